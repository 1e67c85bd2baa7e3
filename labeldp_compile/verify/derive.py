"""From the decoded integers to the claims, by direct counting in exact arithmetic.

Written independently of the compiler's own analysis, and more plainly: for each label it walks the
few segments that the label's window covers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from labeldp_compile.randomizer import WindowRandomizer
from labeldp_compile.verify.bounds import log_bounds

Bounds = tuple[Fraction, Fraction]


def worst_ratio(randomizer: WindowRandomizer) -> Fraction:
    """An upper bound of Pr[output | label] / Pr[output | label'] over all outputs and labels.

    A label's count of output i is at least base[i]. It is at most base[i] plus the most integers of
    i that any window of X integers on the extra line covers: the window slides from left to right,
    and the most is reached where it begins at the start, or ends at the end, of a segment of i.
    """
    X, ends = randomizer.window, _ends(randomizer)
    own: dict[int, list[tuple[int, int]]] = {}
    for j, segment in enumerate(randomizer.extra):
        own.setdefault(segment.output, []).append((ends[j], ends[j + 1]))
    worst = Fraction(1)
    for output, segments in own.items():
        most = 0
        starts = {a for a, _ in segments} | {b - X for _, b in segments}
        for s in (min(max(start, 0), ends[-1] - X) for start in starts):
            most = max(most, sum(max(0, min(b, s + X) - max(a, s)) for a, b in segments))
        worst = max(worst, Fraction(randomizer.base[output] + most, randomizer.base[output]))
    return worst


def largest_bias(randomizer: WindowRandomizer, labels: Sequence[Fraction]) -> Fraction:
    """max over labels of |E[output | y] − y|."""
    values = [Fraction(v) for v in randomizer.values]
    base = sum((b * v for b, v in zip(randomizer.base, values, strict=True)), Fraction(0))
    return max(
        abs((base + sum(n * values[i] for i, n in window)) / randomizer.words - y)
        for y, window in zip(labels, _windows(randomizer), strict=True)
    )


def expected_loss(
    randomizer: WindowRandomizer, labels: Sequence[Any], weights: Sequence[int], loss: str
) -> Bounds:
    """Bounds of E ℓ(ŷ, y), y drawn in proportion to the integer weights; equal if rational.

    ``squared`` ½(ŷ − y)², ``absolute`` |ŷ − y|, ``poisson`` ŷ − y·ln ŷ, ``zero_one`` 1[ŷ ≠ y].
    """
    base_loss, point_loss = _LOSSES[loss](randomizer)
    low = high = Fraction(0)
    for y, weight, window in zip(labels, weights, _windows(randomizer), strict=True):
        if weight:
            lo, hi = base_loss(y)
            for i, n in window:
                point = point_loss(i, y)
                lo, hi = lo + n * point[0], hi + n * point[1]
            low, high = low + weight * lo, high + weight * hi
    total = sum(weights) * randomizer.words
    return low / total, high / total


def _ends(randomizer: WindowRandomizer) -> list[int]:
    return list(accumulate((segment.length for segment in randomizer.extra), initial=0))


def _windows(randomizer: WindowRandomizer) -> Iterator[list[tuple[int, int]]]:
    """For each label the (output, count) pairs of the segments that its window covers."""
    ends, X = _ends(randomizer), randomizer.window
    for s in randomizer.offsets:
        covered, j = [], bisect_right(ends, s) - 1
        while X and j < len(randomizer.extra) and ends[j] < s + X:
            count = min(ends[j + 1], s + X) - max(ends[j], s)
            covered.append((randomizer.extra[j].output, count))
            j += 1
        yield covered


def _squared(randomizer: WindowRandomizer) -> Any:
    values = [Fraction(v) for v in randomizer.values]
    m0, m1, m2 = (
        sum((b * v**power for b, v in zip(randomizer.base, values, strict=True)), Fraction(0))
        for power in range(3)
    )

    def base(y: Fraction) -> Bounds:
        result = (m2 - 2 * y * m1 + y * y * m0) / 2
        return result, result

    def point(i: int, y: Fraction) -> Bounds:
        result = (values[i] - y) ** 2 / 2
        return result, result

    return base, point


def _absolute(randomizer: WindowRandomizer) -> Any:
    values = [Fraction(v) for v in randomizer.values]
    mass = list(accumulate(randomizer.base, initial=0))
    moment = list(
        accumulate(
            (b * v for b, v in zip(randomizer.base, values, strict=True)), initial=Fraction(0)
        )
    )

    def base(y: Fraction) -> Bounds:
        j = bisect_left(values, y)
        below = y * mass[j] - moment[j]
        result = below + (moment[-1] - moment[j]) - y * (mass[-1] - mass[j])
        return result, result

    def point(i: int, y: Fraction) -> Bounds:
        return abs(values[i] - y), abs(values[i] - y)

    return base, point


def _poisson(randomizer: WindowRandomizer) -> Any:
    values = [Fraction(v) for v in randomizer.values]
    logs = [_outward(log_bounds(v)) if v > 0 else None for v in values]
    pairs = list(zip(randomizer.base, logs, strict=True))
    m1 = sum((b * v for b, v in zip(randomizer.base, values, strict=True)), Fraction(0))
    finite = None not in logs
    low_sum = sum((b * log[0] for b, log in pairs if log), Fraction(0))
    high_sum = sum((b * log[1] for b, log in pairs if log), Fraction(0))

    def base(y: Fraction) -> Bounds:
        if y == 0:
            return m1, m1
        if y < 0 or not finite:
            raise ValueError("the Poisson loss is infinite")
        return m1 - y * high_sum, m1 - y * low_sum

    def point(i: int, y: Fraction) -> Bounds:
        log = logs[i]
        if y == 0 or log is None:
            return values[i], values[i]
        return values[i] - y * log[1], values[i] - y * log[0]

    return base, point


def _outward(bounds: Bounds) -> Bounds:
    """The same bounds, a little wider, over one common denominator: sums stay short."""
    unit = 2**256
    low, high = bounds
    return Fraction(math.floor(low * unit), unit), Fraction(math.ceil(high * unit), unit)


def _zero_one(randomizer: WindowRandomizer) -> Any:
    outputs = {v: i for i, v in enumerate(randomizer.values)}

    def base(y: Any) -> Bounds:
        hit = outputs.get(y)
        result = Fraction(sum_base - (randomizer.base[hit] if hit is not None else 0))
        return result, result

    def point(i: int, y: Any) -> Bounds:
        result = Fraction(int(outputs.get(y) != i))
        return result, result

    sum_base = randomizer.base_total
    return base, point


_LOSSES: dict[str, Any] = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
