"""What follows from the integers of a window randomizer.

An expectation is an integral over two lines, the base line as a whole and the label's window on
the extra line, so that prefix sums give it in O(log m); no matrix is formed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.analysis import (
    Analysis,
    Bounds,
    BoundsOfRow,
    Labels,
    Loss,
    OfRow,
    TooMuchWorkError,
    integers_of,
)
from labeldp_verify.analysis.bounds import log_bounds
from labeldp_verify.analysis.strays import Strays, stray_columns
from labeldp_verify.budget import charge
from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

Points = NDArray[np.int64]


class StepFunction:
    """``numbers[j]`` on the j-th of consecutive segments of a line below 2^63, from 0.

    ``ends`` [L + 1] holds the ends of the segments, 0 first.
    """

    def __init__(self, ends: Points, numbers: Sequence[int]) -> None:
        """``ends`` [L + 1] increasing from 0; ``numbers`` [L] integers of any size."""
        self.ends = ends
        self._numbers = whole(numbers)
        products = map(mul, np.diff(ends).tolist(), self._numbers.tolist())
        self._sums = whole(accumulate(products, initial=0))

    def at(self, points: Points) -> Whole:
        """The numbers at points of the line (the last one behind its end)."""
        return self._numbers[self._segments(points)]

    def upto(self, points: Points) -> Whole:
        """The integrals from 0 to points."""
        if not len(self._numbers):
            return whole([0] * len(points))
        j = self._segments(points)
        inside = (points - self.ends[j]).astype(object)
        return self._sums[j] + inside * self._numbers[j]  # type: ignore[no-any-return]

    def between(self, starts: Points, ends: Points) -> Whole:
        """The integrals from ``starts`` to ``ends``."""
        return self.upto(ends) - self.upto(starts)  # type: ignore[no-any-return]

    def _segments(self, points: Points) -> NDArray[np.intp]:
        """The segments that hold points of a line that is not empty."""
        return np.minimum(
            np.searchsorted(self.ends, points, side="right") - 1, len(self._numbers) - 1
        )


def ends_of(lengths: Iterable[int]) -> Points:
    """[L + 1] the ends of consecutive segments, from 0; OverflowError at 2^63."""
    return np.array(list(accumulate(lengths, initial=0)), dtype=np.int64)


MAX_STEPS = 30_000_000
_STEP, _EXACT_STEP = 1e-6, 3e-6  # seconds of integers, and of integers of many digits
_STRETCH, _LOGARITHM = 300e-6, 300e-6
_FEW = 4  # segments of an output, which are looked at for all labels together
_LOG_SCALE = 2**256
_AT_ONCE = 1 << 16  # rows whose losses are held at one time


class WindowAnalysis(Analysis[WindowRandomizer]):
    """The analysis of a window randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.offsets)

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"a window randomizer: {len(r.offsets):,} labels, {len(r.values):,} outputs, "
            f"words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a row, or None."""
        r = self.randomizer
        if min(r.base) < 1:
            return "an output has no base weight"
        if r.base_total + r.window != r.words or r.window < 0:
            return "the window is wrong"
        if max(r.offsets) + r.window > r.extra_total or min(r.offsets) < 0:
            return "a window leaves the extra line"
        return None

    def worst_ratio(self) -> Fraction:
        """An upper bound of Pr[output | label] / Pr[output | label'] over outputs and labels.

        A label's count of output i is at least base[i]. It is at most base[i] plus the most
        integers of i that any window of X integers on the extra line covers: the window slides from
        left to right, and the most is reached where it begins at the start, or ends at the end, of
        a segment of i.
        """
        r, owned = self.randomizer, self._owned
        X, last = r.window, r.extra_total - r.window
        steps = sum(count**2 for count in owned.counts.tolist())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("too many segments belong to one output")
        charge("outputs with many segments", seconds=steps * _STEP)
        # Of a single segment a window covers what it can, if it begins there or lies at the end.
        alone = np.flatnonzero(owned.counts == 1)
        first, end = (side[owned.first[alone]] for side in (owned.starts, owned.stops))
        most = np.minimum(end, np.minimum(first, last) + X) - first
        found = list(zip(alone.tolist(), most.tolist(), strict=True))
        for output in np.flatnonzero(owned.counts > 1).tolist():
            segments = owned.of(output)
            starts = {a for a, _ in segments} | {b - X for _, b in segments}
            inside = {min(max(start, 0), last) for start in starts}
            found.append((output, max(_covered(segments, s, s + X) for s in inside)))
        up, down = 1, 1
        for output, covered in found:
            base = r.base[output]
            if (base + covered) * down > up * base:
                up, down = base + covered, base
        return Fraction(up, down)

    @cached_property
    def _numbers(self) -> tuple[list[int], int]:
        """The outputs over one denominator."""
        return integers_of(self.randomizer.values)

    @cached_property
    def _sums(self) -> _Sums:
        return _Sums(self.randomizer, self._numbers[0])

    @cached_property
    def _places(self) -> tuple[Points, NDArray[np.intp]]:
        """The offsets that there are, and for each row which one is its own."""
        offsets = np.array(self.randomizer.offsets, dtype=np.int64)
        return np.unique(offsets, return_inverse=True)

    @cached_property
    def _moments(self) -> tuple[ExactNumbers, ExactNumbers]:
        """E[ŷ] and E[ŷ²] by the offset."""
        offsets, words = self._places[0], self.randomizer.words
        numbers, unit = self._numbers
        first = self._sums.of(offsets)
        second = _Sums(self.randomizer, [v * v for v in numbers]).of(offsets)
        return ExactNumbers(first, words * unit), ExactNumbers(second, words * unit**2)

    def means(self) -> ExactNumbers:
        """[k] E[ŷ] of every row."""
        return self._moments[0].take(self._places[1])

    def variances(self) -> ExactNumbers:
        """[k] Var[ŷ] of every row."""
        mean, square = self._moments
        unit = mean.unit**2
        by_offset = ExactNumbers(square.over(unit) - mean.numerators**2, unit)
        return by_offset.take(self._places[1])

    def moments(self) -> tuple[OfRow, OfRow]:
        """E[ŷ] and E[ŷ²] by the row."""
        (mean, square), where = self._moments, self._places[1]
        return lambda i: mean[int(where[i])], lambda i: square[int(where[i])]

    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """Bounds of E[ℓ(ŷ, labels[i])] by the row i."""

        def of_row(i: int) -> Bounds:
            low, high = self.losses(np.array([i]), labels[i : i + 1], loss)
            return low[0], high[0]

        return of_row

    def losses(
        self, rows: NDArray[np.intp], labels: Labels, loss: Loss
    ) -> tuple[ExactNumbers, ExactNumbers]:
        """Bounds [n] of E[ℓ(ŷ, labels[j])] in the row rows[j], for ``rows`` and ``labels`` [n].

        Raises ValueError where the loss is infinite.
        """
        if loss == "zero_one":
            both = self._zero_one(rows, labels)
            return both, both
        numbers = ExactNumbers.of(labels)
        if loss == "squared":
            both = self._squared(rows, numbers)
            return both, both
        if loss == "absolute":
            both = self._absolute(rows, numbers)
            return both, both
        return self._poisson(rows, numbers)

    def expected_loss(
        self, labels: Labels, weights: Sequence[int], loss: Loss, strays: Strays | None = None
    ) -> Bounds:
        """Bounds of E ℓ(ŷ, y), y drawn in proportion to ``weights`` [k] (integers ≥ 0)."""
        known = labels if loss == "zero_one" else ExactNumbers.of(labels)
        low = high = Fraction(0)
        weighty = np.flatnonzero([weight != 0 for weight in weights])
        for rows in np.split(weighty, range(_AT_ONCE, len(weighty), _AT_ONCE)):
            own = [weights[i] for i in rows.tolist()]
            least, most = self.losses(rows, _taken(known, rows), loss)
            low, high = low + least.weighted(own), high + most.weighted(own)
        if strays:  # what changes where a label takes the row of a neighbour
            at, others, shares = stray_columns(strays)
            kept = np.array([weights[i] != 0 for i in at.tolist()], dtype=bool)
            at, others, shares = at[kept], others[kept], shares.take(np.flatnonzero(kept))
            own = [weights[i] * n for i, n in zip(at.tolist(), shares.numerators, strict=True)]
            seen = _taken(known, at)
            there, here = self.losses(others, seen, loss), self.losses(at, seen, loss)
            low += there[0].minus(here[0]).weighted(own) / shares.unit
            high += there[1].minus(here[1]).weighted(own) / shares.unit
        total = sum(weights)
        return low / total, high / total

    def _squared(self, rows: NDArray[np.intp], labels: ExactNumbers) -> ExactNumbers:
        """½·E[(ŷ − y)²] from the first two moments."""
        where = self._places[1][rows]
        mean, square = (moment.take(where) for moment in self._moments)
        # Over words·unit², and the labels' own unit squared.
        words, y, parts = self.randomizer.words, labels.numerators, labels.unit
        unit = mean.unit // words
        twice = (
            square.numerators * parts**2
            - (2 * unit * parts) * (y * mean.numerators)
            + (words * unit**2) * (y * y)
        )
        return ExactNumbers(twice, 2 * words * (unit * parts) ** 2)

    def _absolute(self, rows: NDArray[np.intp], labels: ExactNumbers) -> ExactNumbers:
        """On a stretch of increasing outputs v − y changes its sign once: both sides are integrals.

        Labels with one offset and as many outputs below them have the same integrals.
        """
        r, sums = self.randomizer, self._sums
        numbers, unit = self._numbers
        outputs = np.array([segment.output for segment in r.extra], dtype=np.int64)
        cuts = np.flatnonzero(np.diff(outputs) < 0) + 1
        stretches = list(zip([0, *cuts], [*cuts, len(outputs)], strict=True)) if r.extra else []
        if len(stretches) * self.rows > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        steps = len(stretches) * len(rows)
        seconds = steps * _EXACT_STEP + len(stretches) * _STRETCH
        charge(f"windows over {steps:,} stretches", seconds=seconds)

        below = _count_below(numbers, unit, labels)
        where = self._places[1][rows]
        pairs, which = np.unique(
            where.astype(np.int64) * (len(numbers) + 1) + below, return_inverse=True
        )
        where, below = np.divmod(pairs, len(numbers) + 1)
        starts = self._places[0][where]
        ends = starts + r.window
        whole_base = np.full(len(pairs), r.base_total)
        # Σ v over the words above the label less that over those below; and the words likewise.
        distance, count = _apart(
            sums.base, np.zeros(len(pairs), np.int64), sums.base.ends[below], whole_base
        )
        count = count.astype(object)
        for first, last in stretches:
            a = np.maximum(starts, sums.extra.ends[first])
            b = np.minimum(ends, sums.extra.ends[last])
            met = np.flatnonzero(a < b)
            if not len(met):
                continue
            a, b = a[met], b[met]
            turn = first + np.searchsorted(outputs[first:last], below[met])
            turn = np.minimum(np.maximum(sums.extra.ends[turn], a), b)
            more, words = _apart(sums.extra, a, turn, b)
            distance[met] += more
            count[met] += words.astype(object)
        distance, count = distance[which], count[which]
        numerators = distance * labels.unit - labels.numerators * (count * unit)
        return ExactNumbers(numerators, unit * labels.unit * r.words)

    def _poisson(
        self, rows: NDArray[np.intp], labels: ExactNumbers
    ) -> tuple[ExactNumbers, ExactNumbers]:
        y, where = labels.numerators, self._places[1][rows]
        least, most = self._logarithms
        if min(y, default=0) < 0 or (least is None and any(y)):
            raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
        mean = self._moments[0].take(where)
        if least is None or most is None:
            return mean, mean
        # E[ŷ] − y·E[ln ŷ], over the units of all three.
        unit = mean.unit * labels.unit * least.unit
        high, low = (
            ExactNumbers(mean.over(unit) - (y * of.numerators) * mean.unit, unit)
            for of in (least.take(where), most.take(where))
        )
        return low, high

    @cached_property
    def _logarithms(self) -> tuple[ExactNumbers | None, ExactNumbers | None]:
        """Bounds of E[ln ŷ] by the offset; None where an output is not positive."""
        numbers, unit = self._numbers
        charge(f"{len(numbers):,} logarithms", seconds=len(numbers) * _LOGARITHM)
        if min(numbers) <= 0:
            return None, None
        logs = [log_bounds(Fraction(v)) for v in numbers]
        shift = log_bounds(Fraction(unit))
        below = [math.floor((low - shift[1]) * _LOG_SCALE) for low, _ in logs]
        above = [math.ceil((high - shift[0]) * _LOG_SCALE) for _, high in logs]
        scale, offsets = _LOG_SCALE * self.randomizer.words, self._places[0]
        low, high = (_Sums(self.randomizer, side).of(offsets) for side in (below, above))
        return ExactNumbers(low, scale), ExactNumbers(high, scale)

    def _zero_one(self, rows: NDArray[np.intp], labels: Labels) -> ExactNumbers:
        r, owned = self.randomizer, self._owned
        output_of = {value: i for i, value in enumerate(r.values)}
        outputs = np.array([output_of.get(y, -1) for y in _keys(labels)], dtype=np.int64)
        there = outputs >= 0
        same = np.where(there, np.array(r.base, dtype=np.int64)[outputs], 0)
        counts = np.where(there, owned.counts[outputs], 0)
        steps = int(counts.sum())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        charge(f"windows over {steps:,} segments", seconds=steps * _STEP)
        starts = np.array(r.offsets, dtype=np.int64)[rows]
        stops = starts + r.window
        for turn in range(_FEW):  # the first segment of each output, then the second, …
            left = np.flatnonzero((counts > turn) & (counts <= _FEW))
            segment = owned.first[outputs[left]] + turn
            covered = np.minimum(owned.stops[segment], stops[left])
            covered -= np.maximum(owned.starts[segment], starts[left])
            same[left] += np.maximum(covered, 0)
        for j in np.flatnonzero(counts > _FEW).tolist():
            at = owned.first[outputs[j]]
            segments = slice(at, at + counts[j])
            covered = np.minimum(owned.stops[segments], stops[j])
            covered -= np.maximum(owned.starts[segments], starts[j])
            same[j] += np.maximum(covered, 0).sum()
        return ExactNumbers(r.words - same.astype(object), r.words)

    @cached_property
    def _owned(self) -> _Owned:
        return _Owned.of_randomizer(self.randomizer)


class _Sums:
    """Σ over the 2^B words of a row of an integer that each output has."""

    def __init__(self, randomizer: WindowRandomizer, numbers: Sequence[int]) -> None:
        """``numbers`` [m] by output."""
        r = randomizer
        self.base = StepFunction(ends_of(r.base), numbers)
        self.extra = StepFunction(
            ends_of(segment.length for segment in r.extra),
            [numbers[segment.output] for segment in r.extra],
        )
        self._whole_base = sum(map(mul, r.base, numbers))
        self._window = r.window

    def of(self, offsets: Points) -> Whole:
        """The sums [n] at offsets [n]."""
        inside = self.extra.between(offsets, offsets + self._window)
        return inside + self._whole_base  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _Owned:
    """The segments of the extra line by their outputs: [L] starts and stops, those of output i from
    ``first[i]`` on, ``counts[i]`` of them, from left to right."""

    first: Points
    counts: Points
    starts: Points
    stops: Points

    @classmethod
    def of_randomizer(cls, randomizer: WindowRandomizer) -> _Owned:
        ends = ends_of(segment.length for segment in randomizer.extra)
        owners = np.array([segment.output for segment in randomizer.extra], dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=len(randomizer.base)).astype(np.int64)
        first = np.cumsum(counts) - counts
        return cls(first, counts, ends[:-1][order], ends[1:][order])

    def of(self, output: int) -> list[tuple[int, int]]:
        """(start, end) of the segments of an output."""
        own = slice(self.first[output], self.first[output] + self.counts[output])
        return list(zip(self.starts[own].tolist(), self.stops[own].tolist(), strict=True))


def _apart(line: StepFunction, start: Points, turn: Points, end: Points) -> tuple[Whole, Points]:
    """The integrals from ``turn`` to ``end`` less those from ``start`` to ``turn``; and of 1."""
    sums = line.between(turn, end) - line.between(start, turn)
    return sums, (end - turn) - (turn - start)


def _count_below(numbers: Sequence[int], unit: int, labels: ExactNumbers) -> Points:
    """[n] how many of the increasing numbers/unit lie below each label."""
    scaled = [number * labels.unit for number in numbers]
    heights = (labels.numerators * unit).tolist()
    return np.array([bisect_left(scaled, height) for height in heights], dtype=np.int64)


def _taken(labels: Labels, rows: NDArray[np.int64]) -> Labels:
    """The labels at these places."""
    if isinstance(labels, ExactNumbers):
        return labels.take(rows)
    return [labels[i] for i in rows.tolist()]


def _keys(labels: Labels) -> Sequence[Any]:
    """The labels as what an equal output hashes to."""
    if isinstance(labels, ExactNumbers) and labels.unit == 1:
        return list(labels.numerators)
    return labels


def _covered(segments: Sequence[tuple[int, int]], start: int, end: int) -> int:
    """How many of the integers start … end − 1 lie in segments."""
    return sum(max(0, min(b, end) - max(a, start)) for a, b in segments)
