"""From the decoded integers to the claims, in exact arithmetic.

Written independently of the compiler's own analysis. ``Sums`` adds a number per output over all
words of a label: the base line once, and the label's window by prefix sums.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from labeldp_compile.randomizer import WindowRandomizer
from labeldp_compile.verify.bounds import log_bounds
from labeldp_compile.verify.budget import charge
from labeldp_compile.verify.form import Bounds, TooMuchWorkError

MAX_STEPS = 30_000_000
_STEP, _EXACT_STEP = 1e-6, 12e-6  # seconds of integers, and of fractions
_LOGARITHM = 300e-6


class Sums:
    """Σ over the 2^B words of a label of an integer f(output), for every label."""

    def __init__(self, randomizer: WindowRandomizer, f: Callable[[int], int]) -> None:
        """``f`` takes the index of an output."""
        self._r = randomizer
        self._values = [f(segment.output) for segment in randomizer.extra]
        lengths = [segment.length for segment in randomizer.extra]
        self._ends = list(accumulate(lengths, initial=0))
        self._sums = list(
            accumulate((n * v for n, v in zip(lengths, self._values, strict=True)), initial=0)
        )
        self._base = sum(b * f(i) for i, b in enumerate(randomizer.base))

    def of(self, label: int) -> int:
        """The sum for one label."""
        start = self._r.offsets[label]
        return self._base + self._until(start + self._r.window) - self._until(start)

    def _until(self, point: int) -> int:
        j = bisect_right(self._ends, point) - 1
        if j < 0 or j >= len(self._values):
            return self._sums[-1]
        return self._sums[j] + (point - self._ends[j]) * self._values[j]


def worst_ratio(randomizer: WindowRandomizer) -> Fraction:
    """An upper bound of Pr[output | label] / Pr[output | label'] over all outputs and labels.

    A label's count of output i is at least base[i]. It is at most base[i] plus the most integers of
    i that any window of X integers on the extra line covers: the window slides from left to right,
    and the most is reached where it begins at the start, or ends at the end, of a segment of i.
    """
    X = randomizer.window
    ends = list(accumulate((segment.length for segment in randomizer.extra), initial=0))
    own: dict[int, list[tuple[int, int]]] = {}
    for j, segment in enumerate(randomizer.extra):
        own.setdefault(segment.output, []).append((ends[j], ends[j + 1]))
    steps = sum(len(segments) ** 2 for segments in own.values())
    if steps > MAX_STEPS:
        raise TooMuchWorkError("too many segments belong to one output")
    charge("outputs with many segments", seconds=steps * _STEP)
    worst = Fraction(1)
    for output, segments in own.items():
        most = 0
        starts = {a for a, _ in segments} | {b - X for _, b in segments}
        for s in (min(max(start, 0), ends[-1] - X) for start in starts):
            most = max(most, sum(max(0, min(b, s + X) - max(a, s)) for a, b in segments))
        worst = max(worst, Fraction(randomizer.base[output] + most, randomizer.base[output]))
    return worst


def exact_biases(randomizer: WindowRandomizer, labels: Sequence[Fraction]) -> list[Fraction]:
    """[k] E[output | y] − y."""
    numbers, unit = _numbers(randomizer)
    sums, words = Sums(randomizer, numbers.__getitem__), randomizer.words
    return [Fraction(sums.of(i), words * unit) - y for i, y in enumerate(labels)]


def loss_of_labels(
    randomizer: WindowRandomizer, labels: Sequence[Any], weights: Sequence[int], loss: str
) -> list[Bounds]:
    """[k] bounds of E[ℓ(ŷ, y) | y]; zeros where the weight is 0."""
    of_label, words = _LOSSES[loss](randomizer), randomizer.words
    result: list[Bounds] = []
    for i, (y, weight) in enumerate(zip(labels, weights, strict=True)):
        low, high = of_label(i, y) if weight else (Fraction(0), Fraction(0))
        result.append((low / words, high / words))
    return result


def _numbers(randomizer: WindowRandomizer) -> tuple[list[int], int]:
    """The outputs as integers, and the unit by which they were multiplied."""
    exact = [Fraction(v) for v in randomizer.values]
    unit = math.lcm(*(v.denominator for v in exact))
    return [int(v * unit) for v in exact], unit


OfLabel = Callable[[int, Any], Bounds]


def _squared(randomizer: WindowRandomizer) -> OfLabel:
    numbers, unit = _numbers(randomizer)
    first = Sums(randomizer, numbers.__getitem__)
    second = Sums(randomizer, lambda i: numbers[i] ** 2)

    def of_label(i: int, y: Fraction) -> Bounds:
        mean, square = Fraction(first.of(i), unit), Fraction(second.of(i), unit**2)
        result = (square - 2 * y * mean + y * y * randomizer.words) / 2
        return result, result

    return of_label


def _absolute(randomizer: WindowRandomizer) -> OfLabel:
    """The base line by prefix sums over the sorted outputs, the window segment by segment."""
    values = [Fraction(v) for v in randomizer.values]
    mass = list(accumulate(randomizer.base, initial=0))
    moment = list(
        accumulate(
            (b * v for b, v in zip(randomizer.base, values, strict=True)), initial=Fraction(0)
        )
    )
    windows = _Windows(randomizer, _EXACT_STEP)

    def of_label(i: int, y: Fraction) -> Bounds:
        j = bisect_left(values, y)
        result = (moment[-1] - 2 * moment[j]) - y * (mass[-1] - 2 * mass[j])
        for output, count in windows.of(i):
            result += count * abs(values[output] - y)
        return result, result

    return of_label


def _poisson(randomizer: WindowRandomizer) -> OfLabel:
    numbers, unit = _numbers(randomizer)
    scale = 2**256
    charge(f"{len(numbers):,} logarithms", seconds=len(numbers) * _LOGARITHM)
    logs = [log_bounds(Fraction(v)) if v > 0 else None for v in numbers]
    shift = log_bounds(Fraction(unit))
    below = [math.floor((log[0] - shift[1]) * scale) if log else 0 for log in logs]
    above = [math.ceil((log[1] - shift[0]) * scale) if log else 0 for log in logs]
    first = Sums(randomizer, numbers.__getitem__)
    low, high = Sums(randomizer, below.__getitem__), Sums(randomizer, above.__getitem__)

    def of_label(i: int, y: Fraction) -> Bounds:
        mean = Fraction(first.of(i), unit)
        if y == 0:
            return mean, mean
        if y < 0 or None in logs:
            raise ValueError("the Poisson loss is infinite")
        return mean - y * Fraction(high.of(i), scale), mean - y * Fraction(low.of(i), scale)

    return of_label


def _zero_one(randomizer: WindowRandomizer) -> OfLabel:
    outputs = {v: i for i, v in enumerate(randomizer.values)}
    windows = _Windows(randomizer, _STEP)

    def of_label(i: int, y: Any) -> Bounds:
        hit = outputs.get(y)
        same = 0
        if hit is not None:
            covered = sum(count for output, count in windows.of(i) if output == hit)
            same = randomizer.base[hit] + covered
        return Fraction(randomizer.words - same), Fraction(randomizer.words - same)

    return of_label


class _Windows:
    """The segments that a label's window covers, with a limit on how many are visited in all."""

    def __init__(self, randomizer: WindowRandomizer, seconds: float) -> None:
        """``seconds`` that a step takes."""
        self._r = randomizer
        self._ends = list(accumulate((s.length for s in randomizer.extra), initial=0))
        self._steps = 0
        steps = sum(
            last - first for first, last in map(self._reach, range(len(randomizer.offsets)))
        )
        charge(f"windows over {steps:,} segments", seconds=steps * seconds)

    def _reach(self, label: int) -> tuple[int, int]:
        """The first segment of a label's window, and the one behind the last."""
        start = self._r.offsets[label]
        stop = start + self._r.window
        return bisect_right(self._ends, start) - 1, bisect_left(self._ends, stop)

    def of(self, label: int) -> list[tuple[int, int]]:
        """(output, count) pairs."""
        start = self._r.offsets[label]
        stop = start + self._r.window
        first, last = self._reach(label)
        self._steps += last - first
        if self._steps > MAX_STEPS:
            raise TooMuchWorkError("the windows cover too many segments")
        return [
            (self._r.extra[j].output, min(self._ends[j + 1], stop) - max(self._ends[j], start))
            for j in range(first, min(last, len(self._r.extra)))
        ]


_LOSSES: dict[str, Callable[[WindowRandomizer], OfLabel]] = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
