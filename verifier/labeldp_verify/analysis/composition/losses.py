"""Distributions of privacy losses on a lattice, and their sums, in integers that round upwards.

δ(ε) does not fall if a mass grows or moves to a higher loss, nor does it after any composition. So
every rounding here goes upwards, and the tails are cut pessimistically: the lower one is moved up,
and the upper one to infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

MASS_BITS = 96
ONE = 1 << MASS_BITS
_TAIL = 1 << (MASS_BITS - 64)


@dataclass(frozen=True)
class Losses:
    """Masses in units of 2^-96: ``masses[i]`` at the loss (first + i)·step, the rest at infinity.

    ``total`` is their sum, at least 1.
    """

    first: int
    masses: list[int]
    infinite: int

    @property
    def total(self) -> int:
        """All masses together."""
        return sum(self.masses) + self.infinite

    def plus(self, other: Losses) -> Losses:
        """The sum of two independent losses: a convolution."""
        finite = sum(self.masses) * sum(other.masses)
        products = _convolved(self.masses, other.masses)
        infinite = _up(self.total * other.total - finite)
        return _cut(Losses(self.first + other.first, [_up(p) for p in products], infinite))

    def times(self, count: int) -> Losses:
        """The sum of ``count`` ≥ 1 independent copies."""
        result, power = None, self
        while True:
            if count & 1:
                result = power if result is None else result.plus(power)
            count >>= 1
            if not count:
                assert result is not None
                return result
            power = power.plus(power)


def from_masses(masses: Mapping[int, Fraction]) -> Losses:
    """The distribution with these masses, rounded up."""
    first, last = min(masses), max(masses)
    integers = [0] * (last - first + 1)
    for index, mass in masses.items():
        integers[index - first] = -(-mass.numerator * ONE // mass.denominator)
    return Losses(first, integers, 0)


def _convolved(one: list[int], other: list[int]) -> list[int]:
    """Exact products of two polynomials, by one product of two long integers (Kronecker)."""
    width = ((sum(one) * sum(other)).bit_length() + 7) // 8
    product = _packed(one, width) * _packed(other, width)
    count = len(one) + len(other) - 1
    data = product.to_bytes(count * width, "little")
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def _packed(masses: list[int], width: int) -> int:
    return int.from_bytes(b"".join(mass.to_bytes(width, "little") for mass in masses), "little")


def _up(product: int) -> int:
    return -(-product >> MASS_BITS)


def _cut(losses: Losses) -> Losses:
    """Without tails of less than 2^-64 each."""
    masses = losses.masses
    low, below = 0, masses[0]
    while below < _TAIL and low < len(masses) - 1:
        low += 1
        below += masses[low]
    high, above = len(masses), 0
    while high - 1 > low and above + masses[high - 1] < _TAIL:
        high -= 1
        above += masses[high]
    kept = [below, *masses[low + 1 : high]]
    return Losses(losses.first + low, kept, losses.infinite + above)
