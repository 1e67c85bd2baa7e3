"""Outputs in a few cells: one output each, or intervals if there are too many outputs.

A cell is a function of the output, so ε-DP is kept. Cells are chosen from draws that no test uses
again.
"""

import math
from itertools import repeat
from typing import Any

import numpy as np
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

MAX_VALUES = 4096
_QUANTILES = 1024
_LISTED = 4
_NAME_COLUMNS = 40
_MINUS_ZERO = -math.ulp(0.0)  # stands for −0, which no file has as an output, and which equals 0


def told_from_zero(outputs: NDArray[Any]) -> NDArray[Any]:
    """Numbers [n] in which −0 is not equal to 0: its sign could say what the label was."""
    if outputs.dtype.kind != "f" or not (minus := np.signbit(outputs) & (outputs == 0)).any():
        return outputs
    return np.where(minus, _MINUS_ZERO, outputs.astype(np.float64))


def as_returned(output: Any) -> Any:
    """The output that ``told_from_zero`` was given."""
    return -0.0 if output == _MINUS_ZERO else output


class ValueCells:
    """A cell for each value; all other values share the last cell."""

    def __init__(self, values: NDArray[Any]) -> None:
        """Numbers, or an object array of hashable values; distinct."""
        self._is_text = values.dtype == object
        self._values = values if self._is_text else np.sort(values)
        self._cells = {value: i for i, value in enumerate(values)} if self._is_text else {}
        self.count = len(values) + 1

    def indices(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """[n] the cell of each output."""
        other = self.count - 1
        if self._is_text:
            found = map(self._cells.get, outputs.tolist(), repeat(other))
            return np.fromiter(found, np.int64, len(outputs))
        if outputs.dtype == object or not other:
            return np.full(len(outputs), other)
        place = np.minimum(np.searchsorted(self._values, outputs), other - 1)
        return np.where(self._values[place] == outputs, place, other)

    def name(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.count - 1:
            return "any other output"
        value = self._values[cell]
        return clipped(str(value), _NAME_COLUMNS) if self._is_text else f"{as_returned(value):g}"


class IntervalCells:
    """Intervals between increasing edges, e₀ ≤ output < e₁, and a cell for NaN and non-numbers."""

    def __init__(self, edges: NDArray[Any]) -> None:
        """Distinct increasing numbers; below the first and above the last there is a cell each."""
        self.edges = edges
        self.count = len(edges) + 2

    def indices(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """[n] the cell of each output."""
        if outputs.dtype == object:
            return np.full(len(outputs), self.count - 1)
        place = np.searchsorted(self.edges, outputs, side="right")
        return np.where(np.isnan(outputs), self.count - 1, place)

    def name(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.count - 1:
            return "not a number"
        low = "-∞" if cell == 0 else f"{self.edges[cell - 1]:g}"
        high = "∞" if cell == len(self.edges) else f"{self.edges[cell]:g}"
        return f"[{low}, {high})"


# A partition of all outputs into ``count`` cells; the last holds everything else.
OutputCells = ValueCells | IntervalCells


def describe(cells: OutputCells, chosen: NDArray[np.bool_]) -> str:
    """A set of cells in words; ``chosen`` [count] marks its members."""
    members = np.flatnonzero(chosen).tolist()
    more = len(members) - _LISTED
    listed = ", ".join(map(cells.name, members[:_LISTED]))
    return listed + (f" and {more:,} more" if more > 0 else "")


def choose_cells(pilot: NDArray[Any]) -> OutputCells:
    """Cells for outputs like these: single values if they are few, else equally frequent intervals.

    Towards both ends the intervals become smaller, down to the rarest outputs of the pilot.
    """
    if pilot.dtype == object:
        values = np.empty(len(set(pilot.tolist())), dtype=object)
        values[:] = sorted(set(pilot.tolist()), key=str)
        return ValueCells(values[:MAX_VALUES])
    numbers = pilot[~np.isnan(pilot)]
    values = np.unique(numbers)
    if len(values) <= MAX_VALUES:
        return ValueCells(values)
    return IntervalCells(edges_of(numbers))


def edges_of(numbers: NDArray[Any]) -> NDArray[Any]:
    """Distinct quantiles of the numbers, and the order statistics 1, 2, 4, 8, … from both ends."""
    ordered, n = np.sort(numbers), len(numbers)
    spread = np.linspace(0, n - 1, _QUANTILES).astype(np.int64)
    ends = 2 ** np.arange(int(np.log2(n)), dtype=np.int64)
    return np.unique(ordered[np.concatenate([spread, ends, n - 1 - ends])])
