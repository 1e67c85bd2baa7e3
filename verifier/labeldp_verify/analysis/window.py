"""What follows from the integers of a window randomizer.

An expectation is an integral over two lines, the base line as a whole and the label's window on
the extra line, so that prefix sums give it in O(log m); no matrix is formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.analysis import (
    Labels,
    ListedAnalysis,
    Rows,
    TooMuchWorkError,
)
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
_STRETCH = 300e-6
_STEP_BYTES = 64


class WindowAnalysis(ListedAnalysis[WindowRandomizer]):
    """The analysis of a window randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.offsets)

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
        steps = int((owned.counts.astype(object) ** 2).sum())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("too many segments belong to one output")
        charge("outputs with many segments", seconds=steps * _STEP, bytes=steps * _STEP_BYTES)
        # Of a single segment a window covers what it can, if it begins there or lies at the end.
        alone = np.flatnonzero(owned.counts == 1)
        first, end = (side[owned.first[alone]] for side in (owned.starts, owned.stops))
        most = np.minimum(end, np.minimum(first, last) + X) - first
        found = list(zip(alone.tolist(), most.tolist(), strict=True))
        for output in np.flatnonzero(owned.counts > 1).tolist():
            own = slice(owned.first[output], owned.first[output] + owned.counts[output])
            a, b = owned.starts[own], owned.stops[own]
            start = np.clip(np.concatenate([a, b - X]), 0, last)
            covered = np.minimum.outer(start + X, b) - np.maximum.outer(start, a)
            found.append((output, int(np.maximum(covered, 0).sum(axis=1).max())))
        up, down = 1, 1
        for output, covered in found:
            base = r.base[output]
            if (base + covered) * down > up * base:
                up, down = base + covered, base
        return Fraction(up, down)

    @cached_property
    def _places(self) -> tuple[Points, NDArray[np.intp]]:
        """The offsets that there are, and for each row which one is its own."""
        offsets = np.array(self.randomizer.offsets, dtype=np.int64)
        return np.unique(offsets, return_inverse=True)

    def _sums(self, numbers: Sequence[int]) -> Whole:
        """The base line as a whole, and the integral over each window."""
        r, (offsets, where) = self.randomizer, self._places
        inside = self._extra_line(numbers).between(offsets, offsets + r.window)
        return (inside + sum(map(mul, r.base, numbers)))[where]  # type: ignore[no-any-return]

    def _extra_line(self, numbers: Sequence[int]) -> StepFunction:
        """The integers ``numbers`` [m] of the outputs on the extra line."""
        extra = self.randomizer.extra
        ends = ends_of(segment.length for segment in extra)
        return StepFunction(ends, [numbers[segment.output] for segment in extra])

    def _absolute(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """On a stretch of increasing outputs v − y changes sign once: both sides are integrals."""
        r, (numbers, unit) = self.randomizer, self._numbers
        base, extra = StepFunction(ends_of(r.base), numbers), self._extra_line(numbers)
        outputs = np.array([segment.output for segment in r.extra], dtype=np.int64)
        cuts = np.flatnonzero(np.diff(outputs) < 0) + 1
        stretches = list(zip([0, *cuts], [*cuts, len(outputs)], strict=True)) if r.extra else []
        if len(stretches) * self.rows > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        steps = len(stretches) * len(rows)
        seconds = steps * _EXACT_STEP + len(stretches) * _STRETCH
        charge(f"windows over {steps:,} stretches", seconds=seconds)

        scaled = whole(number * labels.unit for number in numbers)
        below = np.searchsorted(scaled, labels.numerators * unit)  # outputs below each label
        starts = np.array(r.offsets, dtype=np.int64)[rows]
        ends = starts + r.window
        # Σ v over the words above the label less that over those below; and the words likewise.
        nothing, whole_base = np.zeros_like(starts), np.full_like(starts, r.base_total)
        distance, count = _apart(base, nothing, base.ends[below], whole_base)
        count = count.astype(object)
        for first, last in stretches:
            a = np.maximum(starts, extra.ends[first])
            b = np.minimum(ends, extra.ends[last])
            met = np.flatnonzero(a < b)
            if not len(met):
                continue
            a, b = a[met], b[met]
            turn = first + np.searchsorted(outputs[first:last], below[met])
            turn = np.minimum(np.maximum(extra.ends[turn], a), b)
            more, words = _apart(extra, a, turn, b)
            distance[met] += more
            count[met] += words.astype(object)
        numerators = distance * labels.unit - labels.numerators * (count * unit)
        return ExactNumbers(numerators, unit * labels.unit * r.words)

    def _zero_one(self, rows: Rows, labels: Labels) -> ExactNumbers:
        r, owned = self.randomizer, self._owned
        outputs = self._equal_outputs(labels)
        there = outputs >= 0
        same = np.where(there, np.array(r.base, dtype=np.int64)[outputs], 0)
        counts = np.where(there, owned.counts[outputs], 0)
        steps = int(counts.sum())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        charge(f"windows over {steps:,} segments", seconds=steps * _STEP, bytes=steps * _STEP_BYTES)
        # Each label with each segment of its output.
        at = np.repeat(np.arange(len(rows)), counts)
        turn = np.arange(steps) - np.repeat(np.cumsum(counts) - counts, counts)
        segment = owned.first[outputs[at]] + turn
        start = np.array(r.offsets, dtype=np.int64)[rows][at]
        covered = np.minimum(owned.stops[segment], start + r.window)
        covered -= np.maximum(owned.starts[segment], start)
        np.add.at(same, at, np.maximum(covered, 0))
        return ExactNumbers(r.words - same.astype(object), r.words)

    @cached_property
    def _owned(self) -> _Owned:
        extra = self.randomizer.extra
        ends = ends_of(segment.length for segment in extra)
        owners = np.array([segment.output for segment in extra], dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=self.randomizer.outputs).astype(np.int64)
        return _Owned(np.cumsum(counts) - counts, counts, ends[:-1][order], ends[1:][order])


@dataclass(frozen=True, eq=False)
class _Owned:
    """The segments of the extra line by their outputs: [L] starts and stops, those of output i from
    ``first[i]`` on, ``counts[i]`` of them, from left to right."""

    first: Points
    counts: Points
    starts: Points
    stops: Points


def _apart(line: StepFunction, start: Points, turn: Points, end: Points) -> tuple[Whole, Points]:
    """The integrals from ``turn`` to ``end`` less those from ``start`` to ``turn``; and of 1."""
    sums = line.between(turn, end) - line.between(start, turn)
    return sums, (end - turn) - (turn - start)
