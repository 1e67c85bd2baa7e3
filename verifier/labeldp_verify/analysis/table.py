"""What follows from the counts of a table randomizer.

Numbers are brought to integers over one common denominator first, so that the sums over all counts
are sums of integers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

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
from labeldp_verify.forms import TableRandomizer

MAX_LOGARITHMS = 1 << 15
_LOGARITHM = 300e-6  # seconds
_LOG_SCALE = 2**256
Counts = Sequence[int]


class TableAnalysis(Analysis[TableRandomizer]):
    """The analysis of a table randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.counts)

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"a table randomizer: {len(r.counts):,} labels, {len(r.values):,} outputs, "
            f"words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a row, or None."""
        r = self.randomizer
        for row in r.counts:
            if min(row) < 1:
                return "an output has no word for some label"
            if sum(row) != r.words:
                return "the words of a label do not sum up"
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

    def moments(self) -> tuple[OfRow, OfRow]:
        """E[ŷ] and E[ŷ²] by the row."""
        counts, words = self.randomizer.counts, self.randomizer.words
        numbers, unit = integers_of(self.randomizer.values)
        squares = [n * n for n in numbers]
        return (
            lambda i: Fraction(_dot(counts[i], numbers), words * unit),
            lambda i: Fraction(_dot(counts[i], squares), words * unit**2),
        )

    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """Bounds of E[ℓ(ŷ, labels[i])] by the row i."""
        if self.randomizer.sets is not None:
            return self._loss_of_sets(loss)
        if loss == "squared":
            return squared_loss(self.moments(), labels)
        of_counts, r = _LOSSES[loss](self.randomizer.values), self.randomizer

        def of_row(i: int) -> Bounds:
            low, high = of_counts(r.counts[i], labels[i])
            return low / r.words, high / r.words

        return of_row

    def _loss_of_sets(self, loss: Loss) -> BoundsOfRow:
        """The 0-1 loss of a class that is drawn from the private set, each as likely."""
        r, sets = self.randomizer, self.randomizer.sets
        assert sets is not None
        if loss != "zero_one":
            raise ValueError("sets of classes have no loss but zero_one")

        def of_row(i: int) -> Bounds:
            by_size: dict[int, int] = defaultdict(int)
            for size, block, count in zip(sets.sizes, sets.blocks, r.counts[i], strict=True):
                if block >> i & 1:
                    by_size[size] += count
            right = sum((Fraction(count, size) for size, count in by_size.items()), Fraction(0))
            result = 1 - right / r.words
            return result, result

        return of_row


OfCounts = Callable[[Counts, Any], Bounds]


def _absolute(values: Sequence[Any]) -> OfCounts:
    """Outputs above y less those below, each with its distance."""
    numbers, unit = integers_of(values)

    def of_counts(row: Counts, y: Fraction) -> Bounds:
        split = bisect_right(numbers, y * unit)
        mass, moment = sum(row), _dot(row, numbers)
        mass_below, moment_below = sum(row[:split]), _dot(row[:split], numbers[:split])
        result = Fraction(moment - 2 * moment_below, unit) - y * (mass - 2 * mass_below)
        return result, result

    return of_counts


def _poisson(values: Sequence[Any]) -> OfCounts:
    if len(values) > MAX_LOGARITHMS:
        raise TooMuchWorkError("too many outputs for the Poisson loss")
    charge(f"{len(values):,} logarithms", seconds=len(values) * _LOGARITHM)
    numbers, unit = integers_of(values)
    positive = all(n > 0 for n in numbers)
    logs = [log_bounds(Fraction(v)) for v in values] if positive else []
    below = [math.floor(low * _LOG_SCALE) for low, _ in logs]
    above = [math.ceil(high * _LOG_SCALE) for _, high in logs]

    def of_counts(row: Counts, y: Fraction) -> Bounds:
        mean = Fraction(_dot(row, numbers), unit)
        if y == 0:
            return mean, mean
        if y < 0 or not positive:
            raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
        low, high = Fraction(_dot(row, below), _LOG_SCALE), Fraction(_dot(row, above), _LOG_SCALE)
        return mean - y * high, mean - y * low

    return of_counts


def _zero_one(values: Sequence[Any]) -> OfCounts:
    index = {value: i for i, value in enumerate(values)}

    def of_counts(row: Counts, y: Any) -> Bounds:
        hit = index.get(y)
        result = Fraction(sum(row) - (0 if hit is None else row[hit]))
        return result, result

    return of_counts


def _dot(one: Counts, other: Sequence[int]) -> int:
    return sum(map(mul, one, other))


_LOSSES: dict[Loss, Callable[[Sequence[Any]], OfCounts]] = {
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
