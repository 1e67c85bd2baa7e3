"""Outputs that a spec gives: whether their ends allow unbiased rows, and weights that make them so.

Only weights may change here. Two outputs, the *pillars*, alone allow every mean between those of
the first and the last label. Other outputs lose weight to them, as little as it takes, until the
first and the last window have these means. The comparison is exact, so no tolerance of a solver
becomes a bias.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from operator import mul
from typing import Self

from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import MAX_WORD_BITS

# Parts of ε: pillars that are enough for less than all of it leave room for rounding.
_PARTS = (Fraction(9, 10), Fraction(999, 1000), Fraction(1))
_GRID_BITS = 30  # a grid's ends are enough for words of this size
_WIDENINGS = 60
MAX_OUTPUTS = 100_000
"""The most outputs of a grid."""


@dataclass(frozen=True)
class Reach:
    """The means that rows must have, and what they need.

    Attributes:
        lowest: the mean of the first label's row.
        highest: the mean of the last label's row, above the lowest.
        epsilon: ε, exact.
        bits: size of the random word.
    """

    lowest: Fraction
    highest: Fraction
    epsilon: Fraction
    bits: int

    @classmethod
    def of(cls, means: Sequence[Fraction], epsilon: Fraction, count: int, bits: int | None) -> Self:
        """Of the rows with these means, for ``count`` outputs in a word that has room for them."""
        return cls(means[0], means[-1], epsilon, bits or MAX_WORD_BITS - count.bit_length())

    def limits(self, share: Fraction = Fraction(1)) -> tuple[Fraction, Fraction]:
        """The ends of the smallest interval that the outputs must reach, at this share of ε.

        If every output is at least a, then E[ŷ − a | y_max] ≤ e^ε·E[ŷ − a | y_min] demands
        a ≤ y_min − (y_max − y_min)/(e^ε − 1), and the same from above.
        """
        beyond = (self.highest - self.lowest) / (exp_lower(share * self.epsilon) - 1)
        return self.lowest - beyond, self.highest + beyond

    def weights(self, low: float | Fraction, high: float | Fraction) -> tuple[int, int] | None:
        """Base weights with which these two outputs alone are enough; None if there are none.

        With P and Q words for the higher output in the first and in the last row, the weights are
        2^B − Q and P. The rows differ by no more than e^ε if Q ≤ r·P and 2^B − P ≤ r·(2^B − Q).
        If there is room, the two means are further apart than they must be.
        """
        first, last, ratio = Fraction(low), Fraction(high), exp_lower(self.epsilon)
        words, width = 1 << self.bits, last - first
        below = ratio * (self.lowest - first) - (self.highest - first)
        above = ratio * (last - self.highest) - (last - self.lowest)
        for room in (max(min(below, above), Fraction(0)) / (ratio + 1) / 2, Fraction(0)):
            few = math.floor(words * (self.lowest - room - first) / width)
            many = math.ceil(words * (self.highest + room - first) / width)
            fits = 1 <= few < many < words
            if fits and many <= ratio * few and words - few <= ratio * (words - many):
                return words - many, few
        return None

    def shares(self, low: float | Fraction, high: float | Fraction) -> list[float]:
        """The shares in words of all words; empty if they are not enough."""
        return [weight / (1 << self.bits) for weight in self.weights(low, high) or ()]

    def exact_sums(self, values: Sequence[float], weights: Sequence[float]) -> list[list[float]]:
        """The weights [m], scaled so that one end and the mean of the other outputs are enough.

        An end that only just reaches far enough leaves no room: then all other outputs have the
        same ratios, and sums that a solver found to within 1e-7 must be exact.
        """
        c, v = [*map(Fraction, weights)], [*map(Fraction, values)]
        found = []
        for first in (1, len(c) - 1):
            parts = slice(first), slice(first, None)
            sums = [sum(c[part]) for part in parts]
            if not all(sums):
                continue
            means = [
                sum(map(mul, c[part], v[part])) / whole
                for part, whole in zip(parts, sums, strict=True)
            ]
            factors = [
                Fraction(share) / whole
                for share, whole in zip(self.shares(*means), sums, strict=False)
            ]
            if factors:
                low, high = factors
                found.append([float(w * (low if i < first else high)) for i, w in enumerate(c)])
        return found

    def all_pillars(self, *several: Sequence[float]) -> list[tuple[float, float]]:
        """Of each of some increasing outputs, pairs near the labels that are enough.

        Pairs that leave more room for rounding come first.
        """
        pairs: dict[tuple[float, float], None] = {}
        for part in _PARTS:
            low, high = self.limits(part)
            for values in several:
                below = [value for value in reversed(values) if Fraction(value) <= low]
                above = [value for value in values if Fraction(value) >= high]
                for i in range(max(len(below), len(above)) if below and above else 0):
                    two = below[min(i, len(below) - 1)], above[min(i, len(above) - 1)]
                    if self.weights(*two) is not None:
                        pairs[two] = None
                        break
        return list(pairs)

    def require(self, values: Sequence[float]) -> tuple[float, float]:
        """The pillars. Raises ValueError, which names two ends that would do, if there are none."""
        pairs = self.all_pillars(values)
        if not pairs:
            low, high = self._short_ends()
            raise ValueError(
                f"no unbiased randomizer at ε = {float(self.epsilon):g} has all outputs in "
                f"[{values[0]:.17g}, {values[-1]:.17g}]: add outputs at or beyond {low} and {high}"
            )
        return pairs[0]

    def _short_ends(self) -> tuple[float, float]:
        """Two ends that are enough, with as few digits as tell them from the limits."""
        low, high = self.limits()
        unit = Fraction(Decimal(f"1e{math.floor(math.log10(float(high - self.highest))) - 3}"))
        for _ in range(_WIDENINGS):
            two = float(math.floor(low / unit) * unit), float(math.ceil(high / unit) * unit)
            if self.weights(*two) is not None:
                break
            unit *= 10
        return two


def even_outputs(labels: Sequence[Fraction], epsilon: Fraction, count: int) -> list[float]:
    """[count] Algorithm 2's grid: even steps between the extremes of debiased RR.

    The ends are slightly further out if an unbiased randomizer needs it (two labels). All is exact
    until the last rounding, so a verifier finds the same numbers.
    """
    exact, epsilon = [Fraction(y) for y in labels], Fraction(epsilon)
    total, k, gain = sum(exact, Fraction(0)), len(exact), exp_lower(epsilon) - 1
    below, above = (total - k * exact[0]) / gain, (k * exact[-1] - total) / gain
    reach = Reach(exact[0], exact[-1], epsilon, _GRID_BITS)
    for i in range(_WIDENINGS):
        low, high = exact[0] - below, exact[-1] + above
        if reach.weights(float(low), float(high)) is not None:
            break
        below, above = below * (1 + Fraction(2**i, 2**40)), above * (1 + Fraction(2**i, 2**40))
    return [float(low + i * (high - low) / (count - 1)) + 0.0 for i in range(count)]


def mixed(
    values: Sequence[float], base: Sequence[int], reach: Reach, pillars: Sequence[float]
) -> Iterator[list[int]]:
    """Base weights of which ever more comes from the pillars alone; all if there are no others."""
    two = reach.weights(*pillars)
    if two is None:
        raise ValueError(f"words of {reach.bits} bits are too short for unbiased rows")
    yield list(base)
    for halvings in range(reach.bits, 0, -1):
        less = [b - (b >> halvings) for b in base]
        for value, weight in zip(pillars, two, strict=True):
            less[values.index(value)] += -(-weight >> halvings)
        yield less
    if len(values) == len(pillars):
        yield list(two)
