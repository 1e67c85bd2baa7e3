"""Pr[output | label] from the integers of any form: exact by the row, in float64 by the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import (
    AdditiveRandomizer,
    Randomizer,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.window import Output

Floats = NDArray[np.float64]


def equally_likely(randomizer: Randomizer) -> int:
    """The denominator of every probability: 2^B, or 2^(2B) where a label takes two words."""
    return int(randomizer.words**randomizer.words_per_label)


def row(randomizer: Randomizer, label: int) -> list[int]:
    """[m] exact counts of each output for the label of this index; they sum to the denominator."""
    if isinstance(randomizer, AdditiveRandomizer):
        return _additive_row(randomizer, label)
    if isinstance(randomizer, TableRandomizer):
        return list(randomizer.counts[label])
    return [int(count) for count in _WindowLines(randomizer).row(label)]


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
    if isinstance(randomizer, AdditiveRandomizer):
        noise = _Noise(randomizer)
        yield from (noise.row(label) for label in labels)
    elif isinstance(randomizer, TableRandomizer):
        for label in labels:
            yield np.array(randomizer.counts[label], dtype=np.float64) / float(randomizer.words)
    else:
        lines = _WindowLines(randomizer)
        yield from (lines.row(label) / float(randomizer.words) for label in labels)


def range_sums(randomizer: Randomizer, labels: Sequence[int], starts: NDArray[np.int64]) -> Floats:
    """[len(labels), n] probabilities of n ranges of outputs, for the labels of these indices.

    Range j holds the outputs of the indices starts[j] … starts[j + 1] − 1; ``starts`` [n + 1] does
    not decrease. Correct to about 1e-15 in absolute terms. One row of the matrix at a time is held,
    and of additive noise none: there may be a hundred million outputs.
    """
    result = np.empty((len(labels), len(starts) - 1))
    if isinstance(randomizer, AdditiveRandomizer):
        noise = _Noise(randomizer)
        for position, label in enumerate(labels):
            result[position] = np.diff(noise.below(label, starts))
        return result
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    for position, probabilities in enumerate(rows(randomizer, labels)):
        inside = probabilities[starts[0] : starts[-1]]
        result[position] = np.bincount(owners, inside, minlength=len(starts) - 1)
    return result


def column(randomizer: Randomizer, output: int) -> Floats:
    """[k] the probability of the output of this index under every label."""
    return next(columns(randomizer, [output]))


def columns(randomizer: Randomizer, outputs: Iterable[int]) -> Iterator[Floats]:
    """``column`` of each output, one at a time; what they share is computed once."""
    if isinstance(randomizer, AdditiveRandomizer):
        noise, labels = _Noise(randomizer), np.arange(randomizer.labels)
        yield from (noise.entries(labels, output) for output in outputs)
    elif isinstance(randomizer, TableRandomizer):
        for output in outputs:
            counts = [float(counts[output]) for counts in randomizer.counts]
            yield np.array(counts) / float(randomizer.words)
    else:
        lines = _WindowLines(randomizer)
        yield from (lines.column(output) / float(randomizer.words) for output in outputs)


def entries(randomizer: Randomizer, places: Iterable[tuple[int, int]]) -> Iterator[float]:
    """Pr[output | label] for pairs (label, output) of indices; what they share is computed once."""
    if isinstance(randomizer, AdditiveRandomizer):
        noise = _Noise(randomizer)
        yield from (float(noise.entries(np.array([y]), i)[0]) for y, i in places)
    elif isinstance(randomizer, TableRandomizer):
        yield from (float(randomizer.counts[y][i]) / float(randomizer.words) for y, i in places)
    else:
        lines = _WindowLines(randomizer)
        yield from (float(lines.row(y)[i]) / float(randomizer.words) for y, i in places)


def at_most(randomizer: AdditiveRandomizer, label: int, outputs: NDArray[np.int64]) -> Floats:
    """[n] Pr[index of the output ≤ outputs[i] | label], for any integers; non-decreasing in them.

    Correct to some units in the last place of 1.
    """
    inside = np.clip(outputs, 0, randomizer.outputs - 1)
    noise = randomizer.low + inside - label * randomizer.spacing
    cumulated = np.minimum(_Noise(randomizer).at_most(noise), 1.0)
    cumulated = np.where(outputs >= randomizer.outputs - 1, 1.0, cumulated)
    return np.where(outputs < 0, 0.0, cumulated)


def value(randomizer: Randomizer, output: int) -> Output:
    """The output of this index, 0 … m − 1."""
    if isinstance(randomizer, AdditiveRandomizer):
        return randomizer.value(randomizer.low + output)
    return randomizer.values[output]


def index_of(randomizer: Randomizer, wanted: Output | Fraction) -> int | None:
    """The index of the output that equals a label, or None; for P[unchanged]."""
    if isinstance(randomizer, AdditiveRandomizer):
        if isinstance(wanted, str):
            return None
        exact = Fraction(wanted)
        steps = round((exact - Fraction(randomizer.origin)) / Fraction(randomizer.unit))
        inside = randomizer.low <= steps <= randomizer.high
        same = inside and Fraction(randomizer.value(steps)) == exact
        return steps - randomizer.low if same else None
    return next(indices_of(randomizer, [wanted]))


def _as_output(label: Output | Fraction) -> Output | None:
    """The output that would equal a label: no float64 equals a fraction that is none."""
    if not isinstance(label, Fraction):
        return label
    number = float(label)
    return number if Fraction(number) == label else None


def indices_of(randomizer: Randomizer, wanted: Iterable[Output | Fraction]) -> Iterator[int | None]:
    """``index_of`` each; what they share is computed once."""
    if isinstance(randomizer, AdditiveRandomizer):
        yield from (index_of(randomizer, label) for label in wanted)
        return
    places: dict[Output | None, int] = {o: i for i, o in enumerate(randomizer.values)}
    yield from (places.get(_as_output(label)) for label in wanted)


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
    noise, furthest = _Noise(randomizer), (randomizer.reach + 1) * randomizer.period

    def within(steps: int) -> float:
        above, below = noise.at_most(np.array([steps, -steps - 1]))
        return float(above - below)

    def quantile(share: float) -> int:
        low, high = 0, furthest - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) >= share else (middle + 1, high)
        return low

    return [quantile(share) for share in shares]


class _WindowLines:
    """The two lines of a window randomizer as int64 vectors: every count is below 2^63."""

    def __init__(self, randomizer: WindowRandomizer) -> None:
        self._r = randomizer
        lengths = [segment.length for segment in randomizer.extra]
        ends = np.array(list(accumulate(lengths, initial=0)), dtype=np.int64)
        self._starts, self._ends = ends[:-1], ends[1:]
        self._owners = np.array([segment.output for segment in randomizer.extra], dtype=np.int64)
        self._base = np.array(randomizer.base, dtype=np.int64)

    def row(self, label: int) -> NDArray[np.int64]:
        start = self._r.offsets[label]
        stop = start + self._r.window
        counts = self._base.copy()
        overlaps = np.minimum(self._ends, stop) - np.maximum(self._starts, start)
        np.add.at(counts, self._owners, np.maximum(overlaps, 0))
        return counts

    def column(self, output: int) -> Floats:
        starts = np.array(self._r.offsets, dtype=np.int64)
        stops = starts + self._r.window
        counts = np.full(len(starts), self._base[output], dtype=np.int64)
        for j in np.flatnonzero(self._owners == output):
            overlaps = np.minimum(self._ends[j], stops) - np.maximum(self._starts[j], starts)
            counts += np.maximum(overlaps, 0)
        return counts.astype(np.float64)


def _additive_row(r: AdditiveRandomizer, label: int) -> list[int]:
    """Exact counts: the noise of a label reaches the inner outputs, the rest lies in the ends."""
    at, zero = label * r.spacing, r.reach + 1

    def weight(noise: int) -> int:
        block, inside = divmod(noise, r.period)
        return r.blocks[zero + block] * r.shapes[int(block >= 0)][inside]

    def up_to(noise: int) -> int:
        block, inside = divmod(noise, r.period)
        whole = sum(r.blocks[: zero + block]) * r.words
        return whole + r.blocks[zero + block] * sum(r.shapes[int(block >= 0)][: inside + 1])

    total = equally_likely(r)
    if r.low == r.high:
        return [total]
    inner = [weight(point - at) for point in range(r.low + 1, r.high)]
    return [up_to(r.low - at), *inner, total - up_to(r.high - 1 - at)]


class _Noise:
    """The noise of an additive randomizer as float64: weights, and cumulated from both sides."""

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
        r, at = self._r, label * self._r.spacing
        if r.low == r.high:
            return np.ones(1)
        inner = self._weights(np.arange(r.low + 1, r.high) - at)
        ends = self.at_most(np.array([r.low - at])), self.at_least(np.array([r.high - at]))
        return np.concatenate([ends[0], inner, ends[1]])

    def below(self, label: int, outputs: NDArray[np.int64]) -> Floats:
        """Pr[index of the output < i | label] for each i of ``outputs``, 0 … m."""
        r = self._r
        inner = (outputs > 0) & (outputs < r.outputs)
        total: Floats = np.where(outputs > 0, 1.0, 0.0)
        total[inner] = self.at_most(r.low + outputs[inner] - 1 - label * r.spacing)
        return total

    def entries(self, labels: NDArray[np.int64], output: int) -> Floats:
        """Pr[output | label] of each of the labels."""
        r = self._r
        noise = r.low + output - labels * r.spacing
        if r.low == r.high:
            return np.ones(len(labels))
        if output == 0:
            return self.at_most(noise)
        return self.at_least(noise) if output == r.outputs - 1 else self._weights(noise)

    def _places(self, noise: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        block, inside = np.divmod(noise, self._r.period)
        return block + self._r.reach + 1, inside

    def _of_side(self, numbers: list[Floats], places: tuple[NDArray[np.int64], ...]) -> Floats:
        block, inside = places
        return np.where(block > self._r.reach, numbers[1][inside], numbers[0][inside])

    def _weights(self, noise: NDArray[np.int64]) -> Floats:
        places = self._places(noise)
        weights: Floats = self._blocks[places[0]] * self._of_side(self._shapes, places)
        return weights

    def at_most(self, noise: NDArray[np.int64]) -> Floats:
        places = self._places(noise)
        inside = self._blocks[places[0]] * self._of_side(self._upto, places)
        total: Floats = self._before[places[0]] + inside
        return total

    def at_least(self, noise: NDArray[np.int64]) -> Floats:
        places = self._places(noise)
        inside = self._blocks[places[0]] * self._of_side(self._from, places)
        total: Floats = self._behind[places[0]] + inside
        return total
