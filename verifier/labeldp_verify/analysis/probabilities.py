"""Pr[output | label] from the integers of any form, and the sums that it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import (
    AdditiveRandomizer,
    Randomizer,
    Segment,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.exact_numbers import Whole, whole
from labeldp_verify.forms.randomizers import Output

# ---- The extra line of a window randomizer: integrals over it, and how much of it an output has.


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
        """The numbers at points of the line (the last one after its end)."""
        return self._numbers[self._segments(points)]

    def upto(self, points: Points) -> Whole:
        """The integrals from 0 to points."""
        if not len(self._numbers):
            return whole([0] * len(points))
        j = self._segments(points)
        inside = (points - self.ends[j]).astype(object)
        return self._sums[j] + inside * self._numbers[j]

    def between(self, starts: Points, ends: Points) -> Whole:
        """The integrals from ``starts`` to ``ends``."""
        return self.upto(ends) - self.upto(starts)

    def _segments(self, points: Points) -> NDArray[np.intp]:
        """The segments that hold points of a line that is not empty."""
        return np.minimum(
            np.searchsorted(self.ends, points, side="right") - 1, len(self._numbers) - 1
        )


def ends_of(lengths: Iterable[int]) -> Points:
    """[L + 1] the ends of consecutive segments, from 0; OverflowError at 2^63."""
    return np.array(list(accumulate(lengths, initial=0)), dtype=np.int64)


class Coverage:
    """How many integers of a line from 0 belong to an output, up to any point.

    ``ends`` [L + 1] holds the ends of the segments, 0 first, and ``owners`` [L] their outputs.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        """``segments`` [L] of the line."""
        lengths = [segment.length for segment in segments]
        self.ends = ends_of(lengths)
        self.owners = np.array([segment.output for segment in segments], dtype=np.int64)
        order = np.argsort(self.owners, kind="stable")
        # By output, and from left to right; both in one number, which stays below 2^63.
        self._keys = self.owners[order] * (len(order) + 1) + order
        self._sums = ends_of(lengths[j] for j in order)

    def between(self, outputs: Points, starts: Points, ends: Points) -> Points:
        """[n] how many of the integers starts[i] … ends[i] − 1 belong to outputs[i]."""
        if not len(self.owners):
            return np.zeros_like(starts)
        return self._upto(outputs, ends) - self._upto(outputs, starts)

    def _upto(self, outputs: Points, points: Points) -> Points:
        """[n] those below points[i], and all of smaller outputs."""
        last = len(self.owners) - 1
        j = np.minimum(np.searchsorted(self.ends, points, side="right") - 1, last)
        before = np.searchsorted(self._keys, outputs * (last + 2) + j)
        inside: Points = np.where(self.owners[j] == outputs, points - self.ends[j], 0)
        return self._sums[before] + inside


# ---- Exact sums over the noise: Σ w(m)·m^p over all m ≤ n, for p = 0, 1, 2.
#
# w(b·D + i) = blocks[b]·shape[i] with the shape of the block's side of zero, so that a sum over
# whole blocks follows from three moments of each shape, and a part of a block from three prefix
# sums.


Moments = tuple[int, int, int]


class NoiseSums:
    """Σ w(m)·m^p over m ≤ n in units of 2^(−2B), at noise values n named in advance.

    Prefix sums are kept for those values only: a shape can have a million weights.
    """

    def __init__(self, randomizer: AdditiveRandomizer, points: Iterable[int]) -> None:
        """``points``: the noise values at which ``up_to`` will be asked."""
        r = randomizer
        self._r = r
        self._first = -r.reach - 1
        wanted: tuple[set[int], set[int]] = (set(), set())
        for point in points:
            block, inside = divmod(point, r.period)
            wanted[block >= 0].add(inside)
        self._parts = [
            _prefix_moments(shape, {*residues, r.period - 1})
            for shape, residues in zip(r.shapes, wanted, strict=True)
        ]
        whole = [parts[r.period - 1] for parts in self._parts]
        sums = [(0, 0, 0)]
        for b, weight in enumerate(r.blocks, self._first):
            sums.append(_sum(sums[-1], _shifted(whole[b >= 0], b * r.period, weight)))
        self._before = sums

    def up_to(self, point: int) -> Moments:
        """The three sums over all noise values m ≤ ``point``, which lies in some block."""
        block, inside = divmod(point, self._r.period)
        weight = self._r.blocks[block - self._first]
        part = _shifted(self._parts[block >= 0][inside], block * self._r.period, weight)
        return _sum(self._before[block - self._first], part)


def _prefix_moments(shape: Sequence[int], wanted: set[int]) -> dict[int, Moments]:
    """Σ shape[i]·i^p over i ≤ each wanted index."""
    indices = range(len(shape))
    order = sorted(wanted)
    columns = []
    terms: list[int] = list(shape)
    for _ in range(3):
        prefix = list(accumulate(terms))
        columns.append([prefix[i] for i in order])
        terms = list(map(mul, terms, indices))
    return dict(zip(order, zip(*columns, strict=True), strict=True))


def _shifted(moments: Moments, by: int, weight: int) -> Moments:
    """The moments of i + ``by``, times ``weight``."""
    m0, m1, m2 = moments
    return weight * m0, weight * (m1 + by * m0), weight * (m2 + by * (2 * m1 + by * m0))


def _sum(one: Moments, other: Moments) -> Moments:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


# ---- Pr[output | label] from the integers of any form: exact by the row, in float64 by the block.


Floats = NDArray[np.float64]


def equally_likely(randomizer: Randomizer) -> int:
    """The denominator of every probability: 2^B, or 2^(2B) where a label takes two words."""
    return int(randomizer.words**randomizer.words_per_label)


def row(randomizer: Randomizer, label: int) -> list[int]:
    """[m] exact counts of each output for the label of this index; they sum to the denominator."""
    return next(exact_rows(randomizer, [label]))


def exact_rows(randomizer: Randomizer, labels: Iterable[int]) -> Iterator[list[int]]:
    """The exact counts [m] of ``row`` for these labels, one label at a time."""
    if isinstance(randomizer, AdditiveRandomizer):
        return (_additive_row(randomizer, label) for label in labels)
    if isinstance(randomizer, TableRandomizer):
        return (list(randomizer.counts[label]) for label in labels)
    windows = _WindowRows(randomizer)
    return (windows.counts(label).tolist() for label in labels)


def matrix(randomizer: Randomizer, labels: Sequence[int]) -> Floats:
    """[len(labels), m] probabilities of every output for the labels of these indices.

    Correct to a few units in the last place.
    """
    result = np.empty((len(labels), randomizer.outputs))
    for position, probabilities in enumerate(rows(randomizer, labels)):
        result[position] = probabilities
    return result


def rows(randomizer: Randomizer, labels: Iterable[int]) -> Iterator[Floats]:
    """The rows [m] of ``matrix``, one at a time."""
    return map(_floats(randomizer).row, labels)


def range_sums(randomizer: Randomizer, labels: Sequence[int], starts: NDArray[np.int64]) -> Floats:
    """[len(labels), n] probabilities of n ranges of outputs, for the labels of these indices.

    Range j holds the outputs of the indices starts[j] … starts[j + 1] − 1; ``starts`` [n + 1] does
    not decrease. Correct to about 1e-15 in absolute terms. One row of the matrix at a time is held,
    and of additive noise none: there may be a hundred million outputs.
    """
    floats = _floats(randomizer)
    return np.array([floats.range_sums(label, starts) for label in labels])


def columns(randomizer: Randomizer, outputs: Iterable[int]) -> Iterator[Floats]:
    """[k] the probability of each of these outputs under every label, one at a time."""
    return map(_floats(randomizer).column, outputs)


def at_most(randomizer: AdditiveRandomizer, label: int, outputs: NDArray[np.int64]) -> Floats:
    """[n] Pr[index of the output ≤ outputs[i] | label], for any integers; non-decreasing in them.

    Correct to some units in the last place of 1.
    """
    inside = np.clip(outputs, -1, randomizer.outputs - 1)
    return np.minimum(_NoiseRows(randomizer).below(label, inside + 1), 1.0)


def value(randomizer: Randomizer, output: int) -> Output:
    """The output of this index, 0 … m − 1."""
    if isinstance(randomizer, AdditiveRandomizer):
        return randomizer.value(randomizer.low + output)
    return randomizer.values[output]


def likely_outputs(randomizer: Randomizer, share: float) -> tuple[int, int]:
    """The first and the last output worth showing: of additive noise, those within a share of it.

    Every label's noise lies between them with at least this probability; other randomizers have no
    tails, and all of their outputs are.
    """
    last = randomizer.outputs - 1
    if not isinstance(randomizer, AdditiveRandomizer):
        return 0, last
    reach = noise_quantiles(randomizer, [share])[0]
    low = max(-reach - randomizer.low, 0)
    return low, min(randomizer.period + reach - randomizer.low, last)


def noise_quantiles(randomizer: AdditiveRandomizer, shares: Sequence[float]) -> list[int]:
    """The least distance from zero, in lattice steps, within which each share of the noise lies.

    Of the noise before outputs are clamped; its folded tails count where they were folded to.
    """
    noise, furthest = _NoiseRows(randomizer), (randomizer.reach + 1) * randomizer.period

    def within(steps: int) -> float:
        above, below = noise.at_most(np.array([steps, -steps - 1]))
        return float(above - below)

    return [bisect_left(range(furthest - 1), share, key=within) for share in shares]


def _floats(randomizer: Randomizer) -> _Rows:
    if isinstance(randomizer, AdditiveRandomizer):
        return _NoiseRows(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return _TableRows(randomizer)
    return _WindowRows(randomizer)


class _Rows(ABC):
    """Probabilities as float64; what they share is computed once."""

    @abstractmethod
    def row(self, label: int) -> Floats:
        """[m] of every output."""

    @abstractmethod
    def column(self, output: int) -> Floats:
        """[k] of one output under every label."""

    def range_sums(self, label: int, starts: NDArray[np.int64]) -> Floats:
        """[n] of ranges of outputs."""
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        sums = np.zeros(len(starts) - 1)
        np.add.at(sums, owners, self.row(label)[starts[0] : starts[-1]])
        return sums


class _TableRows(_Rows):
    """Those of a table randomizer."""

    def __init__(self, randomizer: TableRandomizer) -> None:
        self._r, self._words = randomizer, float(randomizer.words)

    def row(self, label: int) -> Floats:
        return np.array(self._r.counts[label], dtype=np.float64) / self._words

    def column(self, output: int) -> Floats:
        return np.array([float(counts[output]) for counts in self._r.counts]) / self._words


class _WindowRows(_Rows):
    """Those of a window randomizer, from its two lines as int64: every count is below 2^63."""

    def __init__(self, randomizer: WindowRandomizer) -> None:
        self._r, self._extra = randomizer, Coverage(randomizer.extra)
        self._base = np.array(randomizer.base, dtype=np.int64)

    def counts(self, label: int) -> NDArray[np.int64]:
        start = self._r.offsets[label]
        stop = start + self._r.window
        counts = self._base.copy()
        overlaps = np.minimum(self._extra.ends[1:], stop) - np.maximum(self._extra.ends[:-1], start)
        np.add.at(counts, self._extra.owners, np.maximum(overlaps, 0))
        return counts

    def row(self, label: int) -> Floats:
        return self.counts(label) / float(self._r.words)

    def column(self, output: int) -> Floats:
        starts = np.array(self._r.offsets, dtype=np.int64)
        outputs = np.full_like(starts, output)
        inside = self._extra.between(outputs, starts, starts + self._r.window)
        return (self._base[output] + inside) / float(self._r.words)


def _additive_row(r: AdditiveRandomizer, label: int) -> list[int]:
    """Exact counts: the noise of a label reaches the inner outputs, the rest lies in the ends."""
    total = equally_likely(r)
    if r.low == r.high:
        return [total]
    ends = [point - label * r.spacing for point in (r.low, r.high - 1)]
    sums = NoiseSums(r, ends)
    below, up_to_last = (sums.up_to(noise)[0] for noise in ends)
    places = (divmod(noise, r.period) for noise in range(ends[0] + 1, ends[1] + 1))
    inner = [r.blocks[block + r.reach + 1] * r.shapes[block >= 0][i] for block, i in places]
    return [below, *inner, total - up_to_last]


class _NoiseRows(_Rows):
    """Those of an additive randomizer: weights of its noise, and cumulated from both sides."""

    def __init__(self, randomizer: AdditiveRandomizer) -> None:
        self._r = r = randomizer
        self._blocks = np.array([weight / r.words for weight in r.blocks])
        self._shapes = [np.array([weight / r.words for weight in shape]) for shape in r.shapes]
        below, above = self._blocks.cumsum(), self._blocks[::-1].cumsum()[::-1]
        # Mass of whole blocks before and behind each, and inside each shape up to and from i.
        self._before, self._behind = below - self._blocks, above - self._blocks
        self._upto = [shape.cumsum() for shape in self._shapes]
        self._from = [shape[::-1].cumsum()[::-1] for shape in self._shapes]

    def row(self, label: int) -> Floats:
        r = self._r
        return self._probabilities(np.full(r.outputs, label), np.arange(r.outputs))

    def column(self, output: int) -> Floats:
        labels = np.arange(self._r.labels)
        return self._probabilities(labels, np.full_like(labels, output))

    def range_sums(self, label: int, starts: NDArray[np.int64]) -> Floats:
        return np.diff(self.below(label, starts))

    def below(self, label: int, outputs: NDArray[np.int64]) -> Floats:
        """Pr[index of the output < i | label] for each i of ``outputs``, 0 … m."""
        r = self._r
        inner = (outputs > 0) & (outputs < r.outputs)
        total: Floats = np.where(outputs > 0, 1.0, 0.0)
        total[inner] = self.at_most(r.low + outputs[inner] - 1 - label * r.spacing)
        return total

    def _probabilities(self, labels: NDArray[np.int64], outputs: NDArray[np.int64]) -> Floats:
        """[n] Pr[outputs[i] | labels[i]]."""
        r = self._r
        if r.outputs == 1:
            return np.ones(len(labels))
        noise = r.low + outputs - labels * r.spacing
        ends = [outputs == 0, outputs == r.outputs - 1]
        found = self._weights(noise)
        for at, tail in zip(ends, (self.at_most, self.at_least), strict=True):
            found[at] = tail(noise[at])
        return found

    def _inside(
        self, sides: list[Floats], noise: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Floats]:
        """[n] the block of a noise, and what its side of zero has at its place inside."""
        block, inside = np.divmod(noise, self._r.period)
        return block + self._r.reach + 1, np.where(block >= 0, sides[1][inside], sides[0][inside])

    def _weights(self, noise: NDArray[np.int64]) -> Floats:
        block, shape = self._inside(self._shapes, noise)
        return self._blocks[block] * shape

    def at_most(self, noise: NDArray[np.int64]) -> Floats:
        """[n] Pr[the noise ≤ each]."""
        block, inside = self._inside(self._upto, noise)
        return self._before[block] + self._blocks[block] * inside

    def at_least(self, noise: NDArray[np.int64]) -> Floats:
        """[n] Pr[the noise ≥ each]."""
        block, inside = self._inside(self._from, noise)
        return self._behind[block] + self._blocks[block] * inside


# ---- The outputs of additive noise by their places on the lattice; they may be too many to list.


def lattice_indices(randomizer: AdditiveRandomizer, numbers: NDArray[Any]) -> NDArray[np.int64]:
    """[n] the exact index of each number among the outputs; −1 if it is not one of them."""
    r = randomizer
    with np.errstate(invalid="ignore"):
        points = np.nan_to_num(np.rint((numbers - r.origin) / r.unit), nan=np.inf)
    same = points * r.unit + r.origin == numbers
    same &= (points >= r.low) & (points <= r.high)
    return np.where(same, np.where(same, points, 0) - r.low, -1).astype(np.int64)
