"""A matrix of probabilities as shades: characters, or colours on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.cli.output import Painted
from labeldp_compile.cli.text_table import clipped, padded, width

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
# From dark to bright in the 256 colours of terminals: black, blues, teal, greens, yellow.
COLOURS = (16, 17, 18, 19, 25, 31, 37, 36, 35, 71, 77, 113, 149, 185, 220, 226)
_LABEL_COLUMNS = 14
_WIDEST_CELL = 6


def heat_map(
    rows: Iterable[NDArray[np.float64]],
    labels: Sequence[str],
    outputs: tuple[str, str],
    *,
    columns: int,
    colour: bool,
    shades: str = SHADES,
) -> list[str]:
    """Lines of at most ``columns`` columns: one for each label, and the outputs below.

    ``rows`` gives the m probabilities of each label; neighbouring outputs are added up where there
    are more than columns. ``outputs`` names the first and the last. Shades follow the square root,
    so that small probabilities can be told from none.
    """
    names = [clipped(label, _LABEL_COLUMNS) for label in labels]
    margin = max(map(width, names), default=0)
    room = max(columns - margin - 3, 8)
    groups = []
    group = 1
    for row in rows:  # one at a time: there may be millions of outputs
        group = -(-len(row) // room)
        groups.append(add_neighbours(row, group))
    binned = np.vstack(groups)
    cell = min(max(room // binned.shape[1], 1), _WIDEST_CELL)
    most = float(binned.max()) or 1.0
    levels = len(COLOURS) if colour else len(shades)
    steps = np.rint(np.sqrt(binned / most) * (levels - 1)).astype(int)
    lines: list[str] = [
        Painted(f"{padded(name, margin)} │{_cells(line, cell, colour, shades)}│")
        for name, line in zip(names, steps, strict=True)
    ]
    indent = " " * (margin + 2)
    lines.append(indent + _axis(outputs, binned.shape[1] * cell))
    each = "" if group == 1 else f", {group:,} together"
    scale = "".join(_cells([step], 1, colour, shades) for step in range(levels))
    lines.append(Painted(f"{indent}columns: outputs in order{each}; shades: 0 {scale} {most:.3g}"))
    return lines


def add_neighbours(row: NDArray[np.float64], group: int) -> NDArray[np.float64]:
    """[⌈m/group⌉] sums over groups of neighbours; the last may be smaller."""
    return np.add.reduceat(row, np.arange(0, len(row), group))


def _cells(line: Sequence[int] | NDArray[np.int64], cell: int, colour: bool, shades: str) -> str:
    if not colour:
        return "".join(shades[step] * cell for step in line)
    runs = ((step, sum(1 for _ in run) * cell) for step, run in groupby(line))
    return "".join(f"\x1b[48;5;{COLOURS[step]}m{' ' * length}" for step, length in runs) + "\x1b[0m"


def _axis(outputs: tuple[str, str], columns: int) -> str:
    """The first output on the left, the last on the right, as far as both fit."""
    first, last = clipped(outputs[0], columns), clipped(outputs[-1], columns)
    if width(first) + width(last) + 1 > columns:
        return f"{first} … {last}"
    return first + padded(last, columns - width(first))
