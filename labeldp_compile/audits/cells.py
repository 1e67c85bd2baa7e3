"""Outputs in a few cells: one output each, or intervals if there are too many outputs.

A cell is a function of the output, so ε-DP is kept. Cells are chosen from draws that no test uses
again.
"""

import math
from collections import Counter
from itertools import repeat
from typing import Any

import numpy as np
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import InputError

MAX_VALUES = 4096
_QUANTILES = 1024
_ONCE = 0.05  # of the pilot: more outputs that occur once are not counted one by one
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
    """Cells for outputs like these: single values if they recur, else equally frequent intervals.

    Towards both ends the intervals become smaller, down to the rarest outputs of the pilot. Raises
    InputError for texts that do not recur: they have no intervals.
    """
    if pilot.dtype == object:
        ordered = sorted(Counter(pilot.tolist()).items(), key=lambda seen: (-seen[1], str(seen[0])))
        if not _recur(np.array([count for _, count in ordered])):
            raise InputError(
                "too many outputs are texts that occur only once, and nothing can be counted: "
                "return numbers, or give more --samples"
            )
        values = np.empty(min(len(ordered), MAX_VALUES), dtype=object)
        values[:] = [value for value, _ in ordered[:MAX_VALUES]]
        return ValueCells(values)
    numbers = pilot[~np.isnan(pilot)]
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= MAX_VALUES and _recur(counts):
        return ValueCells(values)
    return IntervalCells(edges_of(numbers))


def _recur(counts: NDArray[np.int64]) -> bool:
    """Whether most further outputs will be among those that were counted.

    The share of those that occurred once estimates the probability of all others (Good and Turing).
    Of noise that is continuous, no output occurs twice, and all would be in the cell of the others.
    """
    return int((counts == 1).sum()) <= _ONCE * int(counts.sum())


def edges_of(numbers: NDArray[Any]) -> NDArray[Any]:
    """Distinct quantiles of the numbers, and the order statistics 1, 2, 4, 8, … from both ends."""
    ordered, n = np.sort(numbers), len(numbers)
    spread = np.linspace(0, n - 1, _QUANTILES).astype(np.int64)
    ends = 2 ** np.arange(int(np.log2(n)), dtype=np.int64)
    return np.unique(ordered[np.concatenate([spread, ends, n - 1 - ends])])
