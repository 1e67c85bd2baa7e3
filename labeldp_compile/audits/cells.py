"""Draw outputs and count them in a few cells; what a verified artifact certifies of each cell.

A cell is a function of the output, so ε-DP is kept: one output each, or intervals if there are too
many outputs. Cells are chosen from draws that no test uses again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from labeldp_verify.analysis import at_most, lattice_indices, matrix
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, output_array
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import InputError
from labeldp_compile.observer import Observer

Counts = NDArray[np.int64]
Draw = Callable[[NDArray[Any]], NDArray[Any]]
"""An opened randomizer: outputs [n] of labels [n]."""
CALL = 1 << 16  # labels in a call
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
            cells = map(self._cells.get, outputs.tolist(), repeat(other))
            return np.fromiter(cells, np.int64, len(outputs))
        if outputs.dtype == object or not other:
            return np.full(len(outputs), other)
        position = np.minimum(np.searchsorted(self._values, outputs), other - 1)
        return np.where(self._values[position] == outputs, position, other)

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
        position = np.searchsorted(self.edges, outputs, side="right")
        return np.where(np.isnan(outputs), self.count - 1, position)

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


class Reference:
    """The certified side of an audit."""

    def __init__(self, decoded: Table, labels: list[int]) -> None:
        """``labels`` are the indices of the audited labels."""
        self._r, self._rows, self._domain = decoded.randomizer, labels, decoded.domain
        self._values = None
        if not isinstance(self._r, AdditiveRandomizer):
            self._values = output_array(self._r.values)
        elif self._r.outputs <= MAX_VALUES:
            points = range(self._r.low, self._r.high + 1)
            self._values = np.array([self._r.value(t) for t in points])

    def inputs(self) -> NDArray[Any]:
        """[L] the audited labels, as the randomizer takes them."""
        return output_array([self._domain.listed[y] for y in self._rows])

    def cells(self, pilot: NDArray[Any]) -> OutputCells:
        """A cell for each output if they are few, else intervals (categories: the audited ones)."""
        if self._values is None:
            assert isinstance(self._r, AdditiveRandomizer)
            known = pilot[self.known(pilot)].astype(float)
            first = np.array([self._r.value(self._r.low)])
            return IntervalCells(edges_of(known if len(known) else first))
        if len(self._values) <= MAX_VALUES:
            return ValueCells(self._values)
        if self._values.dtype == np.float64:
            # The outputs of the audited labels reveal most, so they keep cells of their own.
            audited_labels = np.searchsorted(self._values, np.asarray(self.inputs(), dtype=float))
            spread = np.arange(0, len(self._values), len(self._values) // (MAX_VALUES // 4))
            edges = np.unique(np.concatenate([spread, audited_labels, audited_labels + 1]))
            return IntervalCells(self._values[edges[edges < len(self._values)]])
        audited = [y for y in self.inputs().tolist() if y in set(self._values.tolist())]
        return ValueCells(output_array(audited or self._values[:1].tolist()))

    def known(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """[n] whether each value is an output of the file."""
        if self._values is not None:
            cells = ValueCells(self._values)
            return cells.indices(outputs) < cells.count - 1
        assert isinstance(self._r, AdditiveRandomizer)
        if outputs.dtype == object:
            return np.zeros(len(outputs), dtype=bool)
        return lattice_indices(self._r, outputs) >= 0

    def probabilities(self, cells: OutputCells) -> NDArray[np.float64]:
        """[L, cells] certified probabilities, correct to a few units in the last place."""
        result = np.zeros((len(self._rows), cells.count))
        if self._values is None:
            assert isinstance(cells, IntervalCells) and isinstance(self._r, AdditiveRandomizer)
            before = lattice_indices(self._r, cells.edges) - 1
            for position, label in enumerate(self._rows):
                cumulated = at_most(self._r, label, before)
                result[position, :-1] = np.diff(cumulated, prepend=0.0, append=1.0)
            return result
        places = cells.indices(self._values)
        for position, label in enumerate(self._rows):
            row = matrix(self._r, [label])[0]
            result[position] = np.bincount(places, weights=row, minlength=cells.count)
        return result


@dataclass(frozen=True)
class Tally:
    """Counts [labels, cells] of outputs, and how many samples each label has [labels]."""

    counts: Counts
    samples: Counts

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(self.counts + other.counts, self.samples + other.samples)

    def seen(self, label: int, cells: NDArray[np.bool_]) -> tuple[int, int]:
        """How often a label gave one of the cells, and in how many samples."""
        return int(self.counts[label][cells].sum()), int(self.samples[label])


class Sampler:
    """Draws from one randomizer, counts outputs by label and cell, and informs an observer.

    Attributes:
        opened: the randomizer itself, which forked processes inherit.
        labels: [L] its labels; methods name them by their indices.
        drawn: how many labels it has randomized.
        cells: of the outputs; they are chosen after a pilot was drawn.
    """

    cells: OutputCells

    def __init__(self, opened: Draw, labels: NDArray[Any], observer: Observer) -> None:
        """Nothing is drawn yet."""
        self.opened, self.labels, self._observer, self.drawn = opened, labels, observer, 0

    def draw(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Outputs [n] of labels [n]."""
        outputs = self.opened(labels)
        self.count(len(labels))
        return outputs

    def count(self, labels: int) -> None:
        """Add to the number of randomized labels; another process may have randomized them."""
        self.drawn += labels
        self._observer.rows(labels)

    def rows(self, label: int, size: int) -> NDArray[Any]:
        """[size] one label."""
        return np.repeat(self.labels[label : label + 1], size)

    def pilot(self, each: int) -> NDArray[Any]:
        """Outputs of all labels: ``each`` from calls with one label, as many from one with all."""
        parts = [self.draw(self.rows(y, each)) for y in range(len(self.labels))]
        every = np.random.default_rng().permutation(np.repeat(self.labels, each))
        return np.concatenate([*parts, self.draw(every)])

    def alone(self, chosen: Sequence[int], samples: int) -> Tally:
        """Count ``samples`` samples of each chosen label, in calls with no other label."""
        tally = self._empty()
        for label in chosen:
            for size in _calls(samples):
                cells = self.cells.indices(self.draw(self.rows(label, size)))
                tally.counts[label] += np.bincount(cells, minlength=self.cells.count)
                tally.samples[label] += size
        return tally

    def mixed(self, samples: int) -> Tally:
        """Count about ``samples`` samples of each label, in calls with labels in random order."""
        tally, generator = self._empty(), np.random.default_rng()
        L, M = tally.counts.shape
        for size in _calls(samples * L):
            rows = generator.integers(0, L, size)
            cells = self.cells.indices(self.draw(self.labels[rows]))
            tally.counts[:] += np.bincount(rows * M + cells, minlength=L * M).reshape(L, M)
            tally.samples[:] += np.bincount(rows, minlength=L)
        return tally

    def _empty(self) -> Tally:
        L = len(self.labels)
        return Tally(np.zeros((L, self.cells.count), np.int64), np.zeros(L, np.int64))


def _calls(samples: int) -> list[int]:
    """Sizes of calls that add up to ``samples``."""
    whole, rest = divmod(samples, CALL)
    return [CALL] * whole + ([rest] if rest else [])
