"""From the decoded counts to the claims, in exact arithmetic.

Written independently of the compiler's own analysis. Numbers are brought to integers over one
common denominator first, so that the sums over all counts are sums of integers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

from labeldp_compile.randomizer import TableRandomizer
from labeldp_compile.verify.bounds import log_bounds
from labeldp_compile.verify.budget import charge
from labeldp_compile.verify.form import Bounds, TooMuchWorkError

MAX_LOGARITHMS = 1 << 15
_LOGARITHM = 300e-6  # seconds
_LOG_SCALE = 2**256
Counts = Sequence[int]


def worst_ratio(randomizer: TableRandomizer) -> Fraction:
    """The largest Pr[output | label] / Pr[output | label'] over all outputs and labels, exact."""
    most, least = list(randomizer.counts[0]), list(randomizer.counts[0])
    for row in randomizer.counts[1:]:
        most = list(map(max, most, row))
        least = list(map(min, least, row))
    up, down = 1, 1
    for high, low in zip(most, least, strict=True):
        if high * down > up * low:
            up, down = high, low
    return Fraction(up, down)


def exact_biases(randomizer: TableRandomizer, labels: Sequence[Fraction]) -> list[Fraction]:
    """[k] E[output | y] − y."""
    numbers, unit = _integers(randomizer.values)
    rows = zip(randomizer.counts, labels, strict=True)
    return [Fraction(_dot(row, numbers), randomizer.words * unit) - y for row, y in rows]


def loss_of_labels(
    randomizer: TableRandomizer, labels: Sequence[Any], weights: Sequence[int], loss: str
) -> list[Bounds]:
    """[k] bounds of E[ℓ(ŷ, y) | y]; zeros where the weight is 0."""
    of_row = _LOSSES[loss](randomizer.values)
    zero = Fraction(0), Fraction(0)
    rows = zip(randomizer.counts, labels, weights, strict=True)
    sums = [of_row(row, y) if weight else zero for row, y, weight in rows]
    return [(low / randomizer.words, high / randomizer.words) for low, high in sums]


OfRow = Callable[[Counts, Any], Bounds]


def _squared(values: Sequence[Any]) -> OfRow:
    numbers, unit = _integers(values)
    squares = [n * n for n in numbers]

    def of_row(row: Counts, y: Fraction) -> Bounds:
        mean, square = Fraction(_dot(row, numbers), unit), Fraction(_dot(row, squares), unit**2)
        result = (square - 2 * y * mean + y * y * sum(row)) / 2
        return result, result

    return of_row


def _absolute(values: Sequence[Any]) -> OfRow:
    """Outputs above y less those below, each with its distance."""
    numbers, unit = _integers(values)

    def of_row(row: Counts, y: Fraction) -> Bounds:
        split = bisect_right(numbers, y * unit)
        mass, moment = sum(row), _dot(row, numbers)
        mass_below, moment_below = sum(row[:split]), _dot(row[:split], numbers[:split])
        result = Fraction(moment - 2 * moment_below, unit) - y * (mass - 2 * mass_below)
        return result, result

    return of_row


def _poisson(values: Sequence[Any]) -> OfRow:
    if len(values) > MAX_LOGARITHMS:
        raise TooMuchWorkError("too many outputs for the Poisson loss")
    charge(f"{len(values):,} logarithms", seconds=len(values) * _LOGARITHM)
    numbers, unit = _integers(values)
    positive = all(n > 0 for n in numbers)
    logs = [log_bounds(Fraction(v)) for v in values] if positive else []
    below = [math.floor(low * _LOG_SCALE) for low, _ in logs]
    above = [math.ceil(high * _LOG_SCALE) for _, high in logs]

    def of_row(row: Counts, y: Fraction) -> Bounds:
        mean = Fraction(_dot(row, numbers), unit)
        if y == 0:
            return mean, mean
        if y < 0 or not positive:
            raise ValueError("the Poisson loss is infinite")
        low, high = Fraction(_dot(row, below), _LOG_SCALE), Fraction(_dot(row, above), _LOG_SCALE)
        return mean - y * high, mean - y * low

    return of_row


def _zero_one(values: Sequence[Any]) -> OfRow:
    index = {value: i for i, value in enumerate(values)}

    def of_row(row: Counts, y: Any) -> Bounds:
        hit = index.get(y)
        result = Fraction(sum(row) - (0 if hit is None else row[hit]))
        return result, result

    return of_row


def _integers(values: Sequence[Any]) -> tuple[list[int], int]:
    """The outputs as integers, and the unit by which they were multiplied."""
    exact = [Fraction(v) for v in values]
    unit = math.lcm(*(v.denominator for v in exact))
    return [v.numerator * (unit // v.denominator) for v in exact], unit


def _dot(one: Counts, other: Sequence[int]) -> int:
    return sum(map(mul, one, other))


_LOSSES: dict[str, Callable[[Sequence[Any]], OfRow]] = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
