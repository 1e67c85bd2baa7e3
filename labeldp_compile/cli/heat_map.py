"""The heat map of ``inspection`` as shades of a terminal: characters, or colours."""

from collections.abc import Sequence

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import are_numbers

from labeldp_compile.cli.output import Painted, clipped, padded, width
from labeldp_compile.tools.inspection.heat_map import HeatMap, heat_map

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
# From dark to bright in the 256 colours of terminals: black, blues, teal, greens, yellow.
_COLOURS = (16, 17, 18, 19, 25, 31, 37, 36, 35, 71, 77, 113, 149, 185, 220, 226)
COLOURED = [f"\x1b[48;5;{number}m \x1b[0m" for number in _COLOURS]
_LABEL_COLUMNS = 14
_LEAST_ROOM, _WIDEST_CELL = 8, 6


def terminal_heat_map(
    decoded: Table,
    labels: Sequence[int],
    names: Sequence[str],
    *,
    columns: int,
    shades: Sequence[str] = SHADES,
) -> list[str]:
    """The heat map of the labels of these indices, in lines of at most ``columns`` columns."""
    most = _room(names, columns)
    heat = heat_map(decoded, labels, most - 1)  # outputs on a lattice may have one cell more
    if not are_numbers(decoded.domain, decoded.randomizer):
        ends = str(heat.outputs[0]), str(heat.outputs[1])
    else:
        ends = f"{heat.output_axis[0]:.6g}", f"{heat.output_axis[1]:.6g}"
    return shaded(heat, names, ends, columns=columns, shades=shades)


def shaded(
    heat: HeatMap,
    names: Sequence[str],
    ends: tuple[str, str],
    *,
    columns: int,
    shades: Sequence[str] = SHADES,
) -> list[str]:
    """Lines of at most ``columns`` columns: one for each label, and the ends of the axis below.

    Shades follow the square root, so that small probabilities can be told from none. Each of
    ``shades`` fills one column, the faintest first.
    """
    names = [clipped(name, _LABEL_COLUMNS) for name in names]
    margin = max(map(width, names), default=0)
    room = _room(names, columns)
    shares = heat.shares.T
    cell = min(max(room // shares.shape[1], 1), _WIDEST_CELL)
    most = float(shares.max()) or 1.0
    steps = np.rint(np.sqrt(shares / most) * (len(shades) - 1)).astype(int)
    lines: list[str] = [
        Painted(f"{padded(name, margin)} │{''.join(shades[step] * cell for step in line)}│")
        for name, line in zip(names, steps, strict=True)
    ]
    indent = " " * (margin + 2)
    lines.append(indent + _axis(ends, shares.shape[1] * cell))
    each = "" if heat.cell_height is None else f", those within {heat.cell_height:.4g} together"
    scale = f"0 {''.join(shades)} {most:.3g}"
    lines.append(Painted(f"{indent}columns: the axis of outputs{each}; shades: {scale}"))
    return lines


def _room(names: Sequence[str], columns: int) -> int:
    """Columns that are left beside the names."""
    margin = max((width(clipped(name, _LABEL_COLUMNS)) for name in names), default=0)
    return max(columns - margin - 3, _LEAST_ROOM)


def _axis(ends: tuple[str, str], columns: int) -> str:
    """One end on the left, the other on the right, as far as both fit."""
    first, last = clipped(ends[0], columns), clipped(ends[1], columns)
    if width(first) + width(last) + 1 > columns:
        return f"{first} … {last}"
    return first + padded(last, columns - width(first))
