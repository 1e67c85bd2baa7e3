"""Exact moments and exact losses of a table randomizer: sums over its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from labeldp_compile.randomizer.exp_bound import log_interval
from labeldp_compile.randomizer.loss import Bounds, Labels, Loss, LossOfLabel, Moments
from labeldp_compile.randomizer.table import TableRandomizer

_LOG_SCALE = 1 << 256


def table_moments(randomizer: TableRandomizer) -> Moments:
    """E[ŷ | y] and E[ŷ² | y] by the index of y."""
    numbers, unit = _scaled(_values(randomizer))
    squares, words = [v * v for v in numbers], randomizer.words
    counts = randomizer.counts
    return (
        lambda i: Fraction(_dot(counts[i], numbers), words * unit),
        lambda i: Fraction(_dot(counts[i], squares), words * unit * unit),
    )


def table_loss(randomizer: TableRandomizer, labels: Labels, loss: Loss) -> LossOfLabel:
    """Bounds of E[ℓ(ŷ, y) | y] by the index of y."""
    if loss == "zero_one":
        return _zero_one(randomizer, labels)
    if loss == "poisson":
        return _poisson(randomizer, labels)
    numbers, unit = _scaled([*_values(randomizer), *labels])
    outputs, targets = numbers[: randomizer.outputs], numbers[randomizer.outputs :]

    def of_label(i: int) -> Bounds:
        y, row = targets[i], randomizer.counts[i]
        if loss == "squared":
            total = _dot(row, [(v - y) ** 2 for v in outputs])
            result = Fraction(total, 2 * randomizer.words * unit * unit)
        else:
            total = _dot(row, [abs(v - y) for v in outputs])
            result = Fraction(total, randomizer.words * unit)
        return result, result

    return of_label


def _poisson(randomizer: TableRandomizer, labels: Labels) -> LossOfLabel:
    mean, _ = table_moments(randomizer)
    logs = [log_interval(v) if v > 0 else None for v in _values(randomizer)]
    below = [math.floor(log[0] * _LOG_SCALE) if log else 0 for log in logs]
    above = [math.ceil(log[1] * _LOG_SCALE) if log else 0 for log in logs]
    scale = _LOG_SCALE * randomizer.words

    def of_label(i: int) -> Bounds:
        y, row = labels[i], randomizer.counts[i]
        if y == 0:
            return mean(i), mean(i)
        if None in logs:
            raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
        low = mean(i) - y * Fraction(_dot(row, above), scale)
        return low, mean(i) - y * Fraction(_dot(row, below), scale)

    return of_label


def _zero_one(randomizer: TableRandomizer, labels: Labels) -> LossOfLabel:
    exact = [Fraction(v) if isinstance(v, float) else v for v in randomizer.values]
    output_of = {value: i for i, value in enumerate(exact)}

    def of_label(i: int) -> Bounds:
        output = output_of.get(labels[i])
        hits = 0 if output is None else randomizer.counts[i][output]
        result = 1 - Fraction(hits, randomizer.words)
        return result, result

    return of_label


def _values(randomizer: TableRandomizer) -> list[Fraction]:
    return [Fraction(value) for value in randomizer.values]


def _scaled(numbers: Sequence[Fraction]) -> tuple[list[int], int]:
    """Numbers as integers over one common denominator."""
    unit = math.lcm(*(number.denominator for number in numbers))
    return [int(number * unit) for number in numbers], unit


def _dot(counts: Sequence[int], numbers: Sequence[int]) -> int:
    return sum(count * number for count, number in zip(counts, numbers, strict=True))
