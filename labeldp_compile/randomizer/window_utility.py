"""Exact moments and exact losses of a window randomizer.

Every loss here is a short sum Σ f(v)·h(y) on pieces, so that prefix sums of f over the two lines
give a label's expectation in O(log m) with integers and rationals only; no matrix is formed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from labeldp_compile.randomizer.exp_bound import log_interval
from labeldp_compile.randomizer.loss import (
    Bounds,
    Labels,
    Loss,
    LossOfLabel,
    Moments,
)
from labeldp_compile.randomizer.step_function import StepFunction
from labeldp_compile.randomizer.window import WindowRandomizer


class Expectations:
    """Sums of one number per output over the words of a label."""

    def __init__(self, randomizer: WindowRandomizer, numbers: Sequence[int]) -> None:
        """``numbers`` [m] holds an exact integer for each output."""
        self.base = StepFunction(randomizer.base, numbers)
        self.extra = StepFunction(
            [segment.length for segment in randomizer.extra],
            [numbers[segment.output] for segment in randomizer.extra],
        )
        self._base_sum = self.base.upto(randomizer.base_total)
        self._offsets, self._window = randomizer.offsets, randomizer.window

    def of_label(self, y: int) -> int:
        """Σ over all 2^B words u of the number of the output that label y gives for u."""
        start = self._offsets[y]
        return self._base_sum + self.extra.between(start, start + self._window)


def window_moments(randomizer: WindowRandomizer) -> Moments:
    """E[ŷ | y] and E[ŷ² | y] by the index of y."""
    first, second = _sums(randomizer)
    words = randomizer.words
    return lambda i: first(i) / words, lambda i: second(i) / words


def window_loss(randomizer: WindowRandomizer, labels: Labels, loss: Loss) -> LossOfLabel:
    """Bounds of E[ℓ(ŷ, y) | y] by the index of y."""
    of_label, words = _LOSSES[loss](randomizer, labels), randomizer.words

    def expectation(i: int) -> Bounds:
        low, high = of_label(i)
        return low / words, high / words

    return expectation


def _sums(randomizer: WindowRandomizer) -> Moments:
    """Σ ŷ and Σ ŷ² over the words of a label."""
    values, unit = _scaled(randomizer)
    first = Expectations(randomizer, values)
    second = Expectations(randomizer, [v * v for v in values])
    return (
        lambda i: Fraction(first.of_label(i), unit),
        lambda i: Fraction(second.of_label(i), unit * unit),
    )


def _squared(randomizer: WindowRandomizer, labels: Labels) -> LossOfLabel:
    first, second = _sums(randomizer)

    def of_label(i: int) -> Bounds:
        y = labels[i]
        result = (second(i) - 2 * y * first(i) + y * y * randomizer.words) / 2
        return result, result

    return of_label


def _absolute(randomizer: WindowRandomizer, labels: Labels) -> LossOfLabel:
    # On a stretch of increasing outputs, |v − y| changes sign once: integrate both sides of it.
    values, unit = _scaled(randomizer)
    sums = Expectations(randomizer, values)
    exact = _exact(randomizer)
    outputs = [segment.output for segment in randomizer.extra]
    stretches = _increasing_stretches(outputs)

    def distance(line: StepFunction, a: int, turn: int, b: int, y: Fraction) -> Fraction:
        turn = min(max(turn, a), b)
        above = line.between(turn, b) - line.between(a, turn)
        return Fraction(above, unit) - y * ((b - turn) - (turn - a))

    def of_label(i: int) -> Bounds:
        y, start = labels[i], randomizer.offsets[i]
        end = start + randomizer.window
        below = bisect_left(exact, y)
        result = distance(sums.base, 0, sums.base.ends[below], randomizer.base_total, y)
        for first, last in stretches:
            a, b = max(start, sums.extra.ends[first]), min(end, sums.extra.ends[last])
            if a < b:
                turn = sums.extra.ends[bisect_left(outputs, below, first, last)]
                result += distance(sums.extra, a, turn, b, y)
        return result, result

    return of_label


def _increasing_stretches(outputs: Sequence[int]) -> list[tuple[int, int]]:
    """Maximal index ranges [first, last) on which ``outputs`` does not decrease."""
    cuts = [j for j in range(1, len(outputs)) if outputs[j] < outputs[j - 1]]
    ends = [0, *cuts, len(outputs)]
    return [(a, b) for a, b in pairwise(ends) if a < b]


def _poisson(randomizer: WindowRandomizer, labels: Labels) -> LossOfLabel:
    values, unit = _scaled(randomizer)
    first = Expectations(randomizer, values)
    scale = 1 << 256
    logs = [log_interval(v) if v > 0 else None for v in _exact(randomizer)]
    low_log = Expectations(randomizer, [int(log[0] * scale) - 1 if log else 0 for log in logs])
    high_log = Expectations(randomizer, [int(log[1] * scale) + 1 if log else 0 for log in logs])

    def of_label(i: int) -> Bounds:
        y, mean = labels[i], Fraction(first.of_label(i), unit)
        if y == 0:
            return mean, mean
        if None in logs:
            raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
        low = mean - y * Fraction(high_log.of_label(i), scale)
        return low, mean - y * Fraction(low_log.of_label(i), scale)

    return of_label


def _zero_one(randomizer: WindowRandomizer, labels: Labels) -> LossOfLabel:
    output_of = {
        Fraction(value) if isinstance(value, float) else value: i
        for i, value in enumerate(randomizer.values)
    }
    starts = list(accumulate((segment.length for segment in randomizer.extra), initial=0))
    owned: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for segment, start in zip(randomizer.extra, starts, strict=False):
        owned[segment.output].append((start, start + segment.length))

    def of_label(i: int) -> Bounds:
        output = output_of.get(labels[i])
        hits = 0
        if output is not None:
            s, e = randomizer.offsets[i], randomizer.offsets[i] + randomizer.window
            covered = sum(max(0, min(b, e) - max(a, s)) for a, b in owned[output])
            hits = randomizer.base[output] + covered
        result = Fraction(randomizer.words - hits)
        return result, result

    return of_label


def _exact(randomizer: WindowRandomizer) -> list[Fraction]:
    return [Fraction(value) for value in randomizer.values]


def _scaled(randomizer: WindowRandomizer) -> tuple[list[int], int]:
    """The outputs as integers over one common power of two."""
    exact = _exact(randomizer)
    unit = max(value.denominator for value in exact)
    return [value.numerator * (unit // value.denominator) for value in exact], unit


_LOSSES: dict[Loss, Callable[[WindowRandomizer, Labels], LossOfLabel]] = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
