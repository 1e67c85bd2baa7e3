"""What follows from the integers of a window randomizer.

An expectation is an integral over two lines, the base line as a whole and the label's window on
the extra line, so that prefix sums give it in O(log m); no matrix is formed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from labeldp_verify.analysis.analysis import (
    Analysis,
    Bounds,
    BoundsOfRow,
    Labels,
    Loss,
    OfRow,
    TooMuchWorkError,
    integers_of,
    squared_loss,
)
from labeldp_verify.analysis.bounds import log_bounds
from labeldp_verify.budget import charge
from labeldp_verify.forms import WindowRandomizer


class StepFunction:
    """``numbers[j]`` on the j-th of consecutive segments, which start at 0.

    ``ends`` [L + 1] holds the ends of the segments, 0 first.
    """

    def __init__(self, lengths: Sequence[int], numbers: Sequence[int]) -> None:
        """``lengths`` [L] of the segments, ≥ 1; ``numbers`` [L], exact."""
        self.ends = list(accumulate(lengths, initial=0))
        self._numbers = numbers
        products = (length * f for length, f in zip(lengths, numbers, strict=True))
        self._sums = list(accumulate(products, initial=0))

    def at(self, point: int) -> int:
        """The number at a point of the line (the last one behind its end)."""
        return self._numbers[self._segment(point)]

    def upto(self, point: int) -> int:
        """The integral from 0 to a point."""
        j = self._segment(point)
        return self._sums[j] + (point - self.ends[j]) * self._numbers[j] if j >= 0 else 0

    def between(self, start: int, end: int) -> int:
        """The integral from ``start`` to ``end``."""
        return self.upto(end) - self.upto(start)

    def _segment(self, point: int) -> int:
        """The segment that holds a point; −1 on an empty line."""
        return min(bisect_right(self.ends, point) - 1, len(self._numbers) - 1)


MAX_STEPS = 30_000_000
_STEP, _EXACT_STEP = 1e-6, 12e-6  # seconds of integers, and of fractions
_LOGARITHM = 300e-6
_LOG_SCALE = 2**256


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
        X, owned = self.randomizer.window, _segments_of(self.randomizer)
        last = self.randomizer.extra_total - X
        steps = sum(len(segments) ** 2 for segments in owned.values())
        if steps > MAX_STEPS:
            raise TooMuchWorkError("too many segments belong to one output")
        charge("outputs with many segments", seconds=steps * _STEP)
        worst = Fraction(1)
        for output, segments in owned.items():
            starts = {a for a, _ in segments} | {b - X for _, b in segments}
            inside = {min(max(start, 0), last) for start in starts}
            most = max(_covered(segments, s, s + X) for s in inside)
            base = self.randomizer.base[output]
            worst = max(worst, Fraction(base + most, base))
        return worst

    def moments(self) -> tuple[OfRow, OfRow]:
        """E[ŷ] and E[ŷ²] by the row."""
        numbers, unit = integers_of(self.randomizer.values)
        first = _Sums(self.randomizer, numbers)
        second = _Sums(self.randomizer, [v * v for v in numbers])
        one, two = self.randomizer.words * unit, self.randomizer.words * unit**2
        return lambda i: Fraction(first.of(i), one), lambda i: Fraction(second.of(i), two)

    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """Bounds of E[ℓ(ŷ, labels[i])] by the row i."""
        if loss == "squared":
            return squared_loss(self.moments(), labels)
        return _LOSSES[loss](self.randomizer, labels)


class _Sums:
    """Σ over the 2^B words of a label of an integer that each output has."""

    def __init__(self, randomizer: WindowRandomizer, numbers: Sequence[int]) -> None:
        """``numbers`` [m] by output."""
        self.base = StepFunction(randomizer.base, numbers)
        self.extra = StepFunction(
            [segment.length for segment in randomizer.extra],
            [numbers[segment.output] for segment in randomizer.extra],
        )
        self._whole_base = self.base.upto(randomizer.base_total)
        self._offsets, self._window = randomizer.offsets, randomizer.window

    def of(self, row: int) -> int:
        """The sum for one label."""
        start = self._offsets[row]
        return self._whole_base + self.extra.between(start, start + self._window)


def _absolute(randomizer: WindowRandomizer, labels: Labels) -> BoundsOfRow:
    """On a stretch of increasing outputs v − y changes its sign once: both sides are integrals."""
    numbers, unit = integers_of(randomizer.values)
    sums = _Sums(randomizer, numbers)
    values = [Fraction(v) for v in randomizer.values]
    outputs = [segment.output for segment in randomizer.extra]
    cuts = [j for j in range(1, len(outputs)) if outputs[j] < outputs[j - 1]]
    stretches = list(pairwise([0, *cuts, len(outputs)])) if outputs else []
    steps = len(stretches) * len(labels)
    if steps > MAX_STEPS:
        raise TooMuchWorkError("the windows cover too many segments")
    charge(f"windows over {steps:,} stretches", seconds=steps * _EXACT_STEP)

    def distance(line: StepFunction, a: int, turn: int, b: int, y: Fraction) -> Fraction:
        turn = min(max(turn, a), b)
        above = line.between(turn, b) - line.between(a, turn)
        return Fraction(above, unit) - y * ((b - turn) - (turn - a))

    def of_row(i: int) -> Bounds:
        y, start = labels[i], randomizer.offsets[i]
        end = start + randomizer.window
        below = bisect_left(values, y)
        result = distance(sums.base, 0, sums.base.ends[below], randomizer.base_total, y)
        for first, last in stretches:
            a, b = max(start, sums.extra.ends[first]), min(end, sums.extra.ends[last])
            if a < b:
                turn = sums.extra.ends[bisect_left(outputs, below, first, last)]
                result += distance(sums.extra, a, turn, b, y)
        return result / randomizer.words, result / randomizer.words

    return of_row


def _poisson(randomizer: WindowRandomizer, labels: Labels) -> BoundsOfRow:
    numbers, unit = integers_of(randomizer.values)
    charge(f"{len(numbers):,} logarithms", seconds=len(numbers) * _LOGARITHM)
    logs = [log_bounds(Fraction(v)) if v > 0 else None for v in numbers]
    shift = log_bounds(Fraction(unit))
    below = [math.floor((log[0] - shift[1]) * _LOG_SCALE) if log else 0 for log in logs]
    above = [math.ceil((log[1] - shift[0]) * _LOG_SCALE) if log else 0 for log in logs]
    first = _Sums(randomizer, numbers)
    low, high = _Sums(randomizer, below), _Sums(randomizer, above)
    words, scale = randomizer.words, _LOG_SCALE * randomizer.words

    def of_row(i: int) -> Bounds:
        y, mean = labels[i], Fraction(first.of(i), unit * words)
        if y == 0:
            return mean, mean
        if y < 0 or None in logs:
            raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
        return mean - y * Fraction(high.of(i), scale), mean - y * Fraction(low.of(i), scale)

    return of_row


def _zero_one(randomizer: WindowRandomizer, labels: Labels) -> BoundsOfRow:
    output_of = {value: i for i, value in enumerate(randomizer.values)}
    owned = _segments_of(randomizer)
    steps = sum(len(owned.get(output_of.get(y, -1), [])) for y in labels)
    if steps > MAX_STEPS:
        raise TooMuchWorkError("the windows cover too many segments")
    charge(f"windows over {steps:,} segments", seconds=steps * _STEP)

    def of_row(i: int) -> Bounds:
        output, start = output_of.get(labels[i]), randomizer.offsets[i]
        same = 0
        if output is not None:
            covered = _covered(owned.get(output, []), start, start + randomizer.window)
            same = randomizer.base[output] + covered
        result = Fraction(randomizer.words - same, randomizer.words)
        return result, result

    return of_row


_LOSSES: dict[Loss, Callable[[WindowRandomizer, Labels], BoundsOfRow]] = {
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}


def _segments_of(randomizer: WindowRandomizer) -> dict[int, list[tuple[int, int]]]:
    """By output the (start, end) of its segments on the extra line."""
    ends = accumulate((segment.length for segment in randomizer.extra), initial=0)
    owned: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for segment, place in zip(randomizer.extra, pairwise(ends), strict=True):
        owned[segment.output].append(place)
    return dict(owned)


def _covered(segments: Sequence[tuple[int, int]], start: int, end: int) -> int:
    """How many of the integers start … end − 1 lie in segments."""
    return sum(max(0, min(b, end) - max(a, start)) for a, b in segments)
