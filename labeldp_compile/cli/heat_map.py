"""A matrix of probabilities as shades: characters, or colours on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.cli.text_table import clipped, padded, width

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
# From dark to bright in the 256 colours of terminals: black, blues, teal, greens, yellow.
COLOURS = (16, 17, 18, 19, 25, 31, 37, 36, 35, 71, 77, 113, 149, 185, 220, 226)
_LABEL_COLUMNS = 14
_WIDEST_CELL = 6


def heat_map(
    probabilities: NDArray[np.float64],
    labels: Sequence[str],
    outputs: Sequence[str],
    *,
    columns: int,
    colour: bool,
    shades: str = SHADES,
) -> list[str]:
    """Lines of at most ``columns`` columns: one for each label, and the outputs below.

    ``probabilities`` [len(labels), m]; neighbouring outputs are added up where there are more than
    columns. ``outputs`` holds the first and the last, or all m. Shades follow the square root, so
    that small probabilities can be told from none.
    """
    names = [clipped(label, _LABEL_COLUMNS) for label in labels]
    margin = max(map(width, names), default=0)
    room = max(columns - margin - 3, 8)
    binned = add_neighbours(probabilities, room)
    cell = min(max(room // binned.shape[1], 1), _WIDEST_CELL)
    most = float(binned.max()) or 1.0
    levels = len(COLOURS) if colour else len(shades)
    steps = np.ceil(np.sqrt(binned / most) * (levels - 1)).astype(int)
    lines = [
        f"{padded(name, margin)} │{_cells(line, cell, colour, shades)}│"
        for name, line in zip(names, steps, strict=True)
    ]
    indent = " " * (margin + 2)
    lines.append(indent + _axis(outputs, binned.shape[1] * cell))
    group = -(-probabilities.shape[1] // room)
    each = "" if group == 1 else f", {group:,} together"
    scale = "".join(_cells([step], 1, colour, shades) for step in range(levels))
    lines.append(f"{indent}columns: outputs in order{each}; shades: 0 {scale} {most:.3g}")
    return lines


def add_neighbours(probabilities: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """[labels, ≤ most] sums over groups of neighbouring outputs, all of one size but the last."""
    group = -(-probabilities.shape[1] // most)
    return np.add.reduceat(probabilities, np.arange(0, probabilities.shape[1], group), axis=1)


def _cells(line: Sequence[int] | NDArray[np.int64], cell: int, colour: bool, shades: str) -> str:
    if not colour:
        return "".join(shades[step] * cell for step in line)
    return "".join(f"\x1b[48;5;{COLOURS[step]}m{' ' * cell}" for step in line) + "\x1b[0m"


def _axis(outputs: Sequence[str], columns: int) -> str:
    """The first output on the left, the last on the right, as far as both fit."""
    first, last = clipped(outputs[0], columns), clipped(outputs[-1], columns)
    if len(outputs) == 1 or width(first) + width(last) + 1 > columns:
        return f"{first} … {last}"
    return first + padded(last, columns - width(first))
