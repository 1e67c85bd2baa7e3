"""What follows from the integers of a window randomizer.

An expectation is an integral over two lines, the base line as a whole and the label's window on
the extra line, so that prefix sums give it in O(log m); no matrix is formed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.analysis import Labels, ListedAnalysis, Rows, TooMuchWorkError
from labeldp_verify.analysis.lines import Coverage, Points, StepFunction, ends_of
from labeldp_verify.budget import charge
from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

MAX_STEPS = 30_000_000
_STEP, _STEP_BYTES = 3e-6, 200  # seconds and bytes of a window in a stretch


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
        r, line = self.randomizer, self._coverage
        ends = np.concatenate([line.ends[:-1], line.ends[1:] - r.window])
        starts, outputs = np.clip(ends, 0, r.extra_total - r.window), np.tile(line.owners, 2)
        most = np.zeros(r.outputs, dtype=np.int64)
        np.maximum.at(most, outputs, line.between(outputs, starts, starts + r.window))
        up, down = 1, 1
        for base, covered in zip(r.base, most.tolist(), strict=True):
            if (base + covered) * down > up * base:
                up, down = base + covered, base
        return Fraction(up, down)

    @cached_property
    def _coverage(self) -> Coverage:
        return Coverage(self.randomizer.extra)

    @cached_property
    def _places(self) -> tuple[Points, NDArray[np.intp]]:
        """The offsets that there are, and for each row which one is its own."""
        offsets = np.array(self.randomizer.offsets, dtype=np.int64)
        return np.unique(offsets, return_inverse=True)

    def _sums(self, numbers: Sequence[int]) -> Whole:
        """The base line as a whole, and the integral over each window."""
        r, (offsets, where) = self.randomizer, self._places
        inside = self._extra_line(numbers).between(offsets, offsets + r.window)
        return (inside + sum(map(mul, r.base, numbers)))[where]

    def _extra_line(self, numbers: Sequence[int]) -> StepFunction:
        """The integers ``numbers`` [m] of the outputs on the extra line."""
        line = self._coverage
        return StepFunction(line.ends, [numbers[output] for output in line.owners.tolist()])

    @cached_property
    def _lines(self) -> tuple[StepFunction, StepFunction]:
        """The outputs on the base line, and on the extra line."""
        numbers, _ = self._numbers
        return StepFunction(ends_of(self.randomizer.base), numbers), self._extra_line(numbers)

    def _absolute(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """On a stretch of increasing outputs v − y changes sign once: both sides are integrals.

        Labels with one offset and as many outputs below them have the same integrals.
        """
        r, (numbers, unit), (base, extra) = self.randomizer, self._numbers, self._lines
        scaled, m = whole(number * labels.unit for number in numbers), len(numbers) + 1
        below = np.searchsorted(scaled, labels.numerators * unit)  # outputs below each label
        pairs, which = np.unique(self._places[1][rows] * m + below, return_inverse=True)
        where, below = np.divmod(pairs, m)
        starts = self._places[0][where]
        ends = starts + r.window
        # Σ v over the words above the label less that over those below; and the words likewise.
        nothing, whole_base = np.zeros_like(starts), np.full_like(starts, r.base_total)
        distance, count = _apart(base, nothing, base.ends[below], whole_base)

        at, stretch, start, end = self._stretches(starts, ends)
        keys = self._stretch_of * m + self._coverage.owners  # of the segments, which they order
        turn = extra.ends[np.searchsorted(keys, stretch * m + below[at])]
        more, words = _apart(extra, start, np.clip(turn, start, end), end)
        np.add.at(distance, at, more)
        np.add.at(count, at, words)
        numerators = distance[which] * labels.unit - labels.numerators * (count[which] * unit)
        return ExactNumbers(numerators, unit * labels.unit * r.words)

    @cached_property
    def _stretch_of(self) -> Points:
        """[L] the stretch of increasing outputs that a segment is in."""
        return np.cumsum(np.diff(self._coverage.owners, prepend=self.randomizer.outputs) < 0) - 1

    def _stretches(self, starts: Points, ends: Points) -> tuple[Points, Points, Points, Points]:
        """Windows [n] with the stretches that they meet: both numbers, and where they overlap."""
        line = self._coverage.ends
        bounds = np.append(line[:-1][np.diff(self._stretch_of, prepend=-1) > 0], line[-1])
        first = np.searchsorted(bounds, starts, side="right") - 1
        met = np.where(starts < ends, np.searchsorted(bounds, ends) - first, 0)
        steps = int(met.sum())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        cost = {"seconds": steps * _STEP, "bytes": steps * _STEP_BYTES}
        charge(f"windows over {steps:,} stretches", **cost)
        at = np.repeat(np.arange(len(starts)), met)
        stretch = np.arange(steps) - np.repeat(np.cumsum(met) - met - first, met)
        overlap = np.maximum(starts[at], bounds[stretch]), np.minimum(ends[at], bounds[stretch + 1])
        return at, stretch, *overlap

    def _zero_one(self, rows: Rows, labels: Labels) -> ExactNumbers:
        r, outputs = self.randomizer, self._equal_outputs(labels)
        there, outputs = outputs >= 0, np.maximum(outputs, 0)
        starts = np.array(r.offsets, dtype=np.int64)[rows]
        kept = self._coverage.between(outputs, starts, starts + r.window)
        kept = np.where(there, kept + np.array(r.base, dtype=np.int64)[outputs], 0)
        return ExactNumbers(r.words - kept.astype(object), r.words)


def _apart(line: StepFunction, start: Points, turn: Points, end: Points) -> tuple[Whole, Whole]:
    """The integrals from ``turn`` to ``end`` less those from ``start`` to ``turn``; and of 1."""
    sums = line.between(turn, end) - line.between(start, turn)
    return sums, ((end - turn) - (turn - start)).astype(object)
