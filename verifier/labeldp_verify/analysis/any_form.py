"""The analysis of a randomizer of any form: tables, windows, and the columns of joint labels."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import compress
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.additive import AdditiveAnalysis
from labeldp_verify.analysis.analysis import (
    Labels,
    ListedAnalysis,
    Rows,
    TooMuchWorkError,
)
from labeldp_verify.analysis.losses import LOSSES, Loss, expected_loss
from labeldp_verify.analysis.probabilities import Coverage, Points, StepFunction, ends_of
from labeldp_verify.budget import charge
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    JointDomain,
    Part,
    Randomizer,
    Segment,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

# ---- What follows from the counts of a table randomizer.
#
# Numbers are brought to integers over one common denominator first, so that the sums over all
# counts are sums of integers.


class TableAnalysis(ListedAnalysis[TableRandomizer]):
    """The analysis of a table randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.counts)

    def why_not_distributions(self) -> str | None:
        """The reason why the integers are not one distribution a row, or None."""
        r = self.randomizer
        for row in r.counts:
            if min(row) < 1:
                return "an output has probability 0 for some label"
            if sum(row) != r.words:
                return "the counts of a label do not add up to all words"
        return None

    def worst_ratio(self) -> Fraction:
        """The largest Pr[output | label] / Pr[output | label'] over all outputs and labels."""
        most, least = list(self.randomizer.counts[0]), list(self.randomizer.counts[0])
        for row in self.randomizer.counts[1:]:
            most = list(map(max, most, row))
            least = list(map(min, least, row))
        up, down = 1, 1
        for high, low in zip(most, least, strict=True):
            if high * down > up * low:
                up, down = high, low
        return Fraction(up, down)

    def _sums(self, numbers: Sequence[int]) -> Whole:
        return whole(_dot(row, numbers) for row in self.randomizer.counts)

    def distances(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """Outputs above y less those below, each with its distance."""
        (numbers, unit), parts, found = self._numbers, labels.unit, []
        for i, y in zip(rows.tolist(), labels.numerators * unit, strict=True):
            row = self.randomizer.counts[i]
            split = bisect_right(numbers, Fraction(y, parts))
            mass = sum(row) - 2 * sum(row[:split])
            moment = _dot(row, numbers) - 2 * _dot(row[:split], numbers[:split])
            found.append(moment * parts - y * mass)
        return ExactNumbers(whole(found), unit * parts * self.randomizer.words)

    def unequal(self, rows: Rows, labels: Labels) -> ExactNumbers:
        """As of every form; of sets, a class is drawn from the private set, each as likely."""
        r = self.randomizer
        if r.sets is not None:
            return self._not_drawn_from_sets(rows)
        places = zip(rows.tolist(), self._equal_outputs(labels).tolist(), strict=True)
        kept = (r.counts[i][output] if output >= 0 else 0 for i, output in places)
        return ExactNumbers(whole(r.words - count for count in kept), r.words)

    def _not_drawn_from_sets(self, rows: Rows) -> ExactNumbers:
        r, sets = self.randomizer, self.randomizer.sets
        assert sets is not None
        sizes = [max(size, 1) for size in sets.sizes]
        unit = math.lcm(*set(sizes))
        shares = [unit // size for size in sizes]
        drawn = (
            sum(compress(map(mul, r.counts[i], shares), sets.matrix[i].tolist()))
            for i in rows.tolist()
        )
        return ExactNumbers(whole(r.words * unit - right for right in drawn), r.words * unit)


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(map(mul, one, other))


# ---- What follows from the integers of a window randomizer.
#
# An expectation is an integral over two lines, the base line as a whole and the label's window on
# the extra line, so that prefix sums give it in O(log m); no matrix is formed.


MAX_STEPS = 30_000_000
_STEP, _STEP_BYTES = 3e-6, 200  # seconds and bytes of a window in a stretch


class WindowAnalysis(ListedAnalysis[WindowRandomizer]):
    """The analysis of a window randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.offsets)

    def why_not_distributions(self) -> str | None:
        """The reason why the integers are not one distribution a row, or None."""
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

    def distances(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
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

    def unequal(self, rows: Rows, labels: Labels) -> ExactNumbers:
        """As of every form."""
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


# ---- The losses of a label's columns: what each column's private label is off by, on average.
#
# The columns of a combination are private together, so the loss of column j is that of its
# marginal: under the prior π, with o_j the place of column j in an output o,
#
#     L_j = Σ_y π_y Σ_o Pr[o | y] · ℓ_j(o_j, y_j).
#
# The marginal of a window randomizer is one: the same windows over segments that belong to places.


_COLUMN_STEP = 4e-6  # seconds of a segment, or of a label, for each column


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of one column, and its public weight in the loss of the whole label."""

    loss: Loss
    weight: Fraction


def column_losses(
    domain: Domain, randomizer: Randomizer, losses: Sequence[Loss], weights: Sequence[int]
) -> list[Fraction]:
    """[c] E ℓ_j of each column, y drawn in proportion to ``weights`` [k] (integers ≥ 0); exact.

    Raises ValueError for a loss that a column has not, or outputs that are no combinations.
    """
    r = randomizer
    if not isinstance(domain, JointDomain) or not isinstance(r, WindowRandomizer):
        raise ValueError("only window randomizers of several columns have losses by column")
    for part, loss in zip(domain.parts, losses, strict=True):
        known = LOSSES.get(loss)
        numbers = not isinstance(part, CategoricalDomain)
        if known is None or not known.of_columns or not (numbers or known.equality):
            raise ValueError(f"a column of this kind has no {loss} loss")
    steps = len(domain.parts) * (len(r.extra) + len(r.offsets) + len(r.base))
    charge(f"the columns of {len(r.offsets):,} labels", seconds=steps * _COLUMN_STEP)
    places = zip(
        domain.places_of(np.arange(domain.size)),
        domain.places_of(np.array(r.values, dtype=np.int64)),
        strict=True,
    )
    found = []
    for part, loss, (own, drawn) in zip(domain.parts, losses, places, strict=True):
        seen: Any = part.labels()
        labels = [part.listed[i] for i in own] if LOSSES[loss].equality else seen.take(own)
        analysis = WindowAnalysis(_marginal(r, part, drawn))
        found.append(expected_loss(analysis, labels, weights, loss)[0])
    return found


def _marginal(r: WindowRandomizer, part: Part, places: NDArray[np.int64]) -> WindowRandomizer:
    """The outputs of one column of a label; ``places`` [m] are the column's in each output."""
    base = np.zeros(part.size, dtype=np.int64)
    np.add.at(base, places, np.array(r.base, dtype=np.int64))
    of_output = places.tolist()
    extra = tuple(Segment(own.length, of_output[own.output]) for own in r.extra)
    return WindowRandomizer(r.word_bits, tuple(base.tolist()), extra, r.offsets, tuple(part.listed))


# ---- The analysis of a randomizer of any form.


def analyse(randomizer: Randomizer) -> AdditiveAnalysis | TableAnalysis | WindowAnalysis:
    """Its exact probabilities, by the form that it has."""
    if isinstance(randomizer, AdditiveRandomizer):
        return AdditiveAnalysis(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return TableAnalysis(randomizer)
    return WindowAnalysis(randomizer)
