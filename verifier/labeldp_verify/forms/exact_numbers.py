"""Exact numbers by the hundred thousand, and rational bounds of e^x and ln x."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

# ---- Exact numbers by the hundred thousand: whole numerators over one common denominator.
#
# One ``Fraction`` a label spends its time on greatest common divisors. Sums and products of
# integers over a denominator that all share are as exact, take a tenth to a hundredth of that, and
# only what is stated in the end is brought to lowest terms.


Whole = NDArray[np.object_]
"""[n] Python integers, of any size."""


@dataclass(frozen=True, eq=False)
class ExactNumbers(Sequence[Fraction]):
    """[n] rational numbers; as a sequence it holds fractions.

    Attributes:
        numerators: [n] integers of any size.
        unit: the denominator of all of them, at least 1; not the least one.
    """

    numerators: Whole
    unit: int = 1

    @classmethod
    def of(cls, numbers: Iterable[Any]) -> ExactNumbers:
        """From integers, finite floats and fractions; exact. What is exact already stays as it is.

        Raises ValueError or OverflowError for NaN and infinities, AttributeError for texts.
        """
        if isinstance(numbers, ExactNumbers):
            return numbers
        ratios = [number.as_integer_ratio() for number in numbers]
        unit = math.lcm(*{below for _, below in ratios})
        return cls(whole([above * (unit // below) for above, below in ratios]), unit)

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self.numerators)

    def __getitem__(self, index: int) -> Fraction:  # type: ignore[override]  # no slices
        """One number as a fraction."""
        return Fraction(self.numerators[index], self.unit)

    def __eq__(self, other: object) -> bool:
        """Whether another sequence holds the same numbers."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a vector is no key

    def take(self, places: NDArray[np.int64]) -> ExactNumbers:
        """The numbers at these places."""
        return ExactNumbers(self.numerators[places], self.unit)

    def minus(self, other: ExactNumbers) -> ExactNumbers:
        """The differences [n]."""
        unit = math.lcm(self.unit, other.unit)
        return ExactNumbers(self.over(unit) - other.over(unit), unit)

    def over(self, unit: int) -> Whole:
        """[n] the numerators over a multiple of ``self.unit``."""
        factor = unit // self.unit
        return self.numerators if factor == 1 else self.numerators * factor

    def floats(self) -> list[float]:
        """[n] the float64 nearest to each; OverflowError beyond the largest."""
        unit = self.unit
        return [number / unit for number in self.numerators.tolist()]

    def total(self) -> Fraction:
        """The sum."""
        return Fraction(sum(self.numerators.tolist()), self.unit)

    def largest(self) -> Fraction:
        """Max |x|, for n ≥ 1."""
        return Fraction(int(max(self.numerators.max(), -self.numerators.min())), self.unit)

    def weighted(self, weights: Sequence[int]) -> Fraction:
        """Σ weight·x for whole weights [n]."""
        return Fraction(dot(weights, self.numerators), self.unit)

    def mean_square(self, weights: Sequence[int]) -> Fraction:
        """Σ weight·x² / Σ weight for whole weights [n], not all 0."""
        squares = dot(weights, self.numerators * self.numerators)
        return Fraction(squares, self.unit**2 * sum(weights))


def whole(numbers: Iterable[int]) -> Whole:
    """[n] integers of any size as a vector of Python integers."""
    listed = numbers if isinstance(numbers, list) else list(numbers)
    vector = np.empty(len(listed), dtype=object)
    vector[:] = listed
    return vector


def dot(weights: Sequence[int], numbers: Whole) -> int:
    """Σ weight·number; ValueError where the lengths differ."""
    if len(weights) != len(numbers):
        raise ValueError("the numbers and their weights differ in length")
    return sum(map(mul, weights, numbers.tolist()))


# ---- Rigorous bounds of e^x and ln x from the standard library's decimal arithmetic.
#
# ``decimal`` rounds exp and ln correctly to the precision asked for, so that the next decimal below
# (above) the result is a lower (upper) bound. No floats are used.


_CONTEXT = Context(prec=120, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999)


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^x, for an exact x of size at most 10^4."""
    return exp_lower(x), exp_upper(x)


def exp_lower(x: Fraction) -> Fraction:
    """A rational at most e^x."""
    if x == 0:
        return Fraction(1)
    low = Fraction(_CONTEXT.next_minus(_divide(x)[0].exp(_CONTEXT)))
    return max(low, Fraction(1)) if x > 0 else low


def exp_upper(x: Fraction) -> Fraction:
    """A rational at least e^x."""
    return Fraction(_CONTEXT.next_plus(_divide(x)[1].exp(_CONTEXT))) if x else Fraction(1)


def log_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above ln x, for an exact x > 0."""
    if x == 1:  # the decimal next to zero has a million digits
        return Fraction(0), Fraction(0)
    low = _CONTEXT.next_minus(_divide(x)[0].ln(_CONTEXT))
    high = _CONTEXT.next_plus(_divide(x)[1].ln(_CONTEXT))
    return Fraction(low), Fraction(high)


def least_log_bound(ratio: Fraction, digits: int = 12) -> Fraction:
    """The least multiple of 10^-digits that is provably at least ln(ratio), for ratio ≥ 1."""
    unit = Fraction(1, 10**digits)
    multiple = max(0, int(log_bounds(ratio)[0] / unit) - 1)
    while exp_bounds(multiple * unit)[0] < ratio and (multiple or ratio > 1):
        multiple += 1
    return multiple * unit


def _divide(x: Fraction) -> tuple[Decimal, Decimal]:
    """Decimals below and above a rational."""
    quotient = _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))
    if Fraction(quotient) == x:
        return quotient, quotient
    return _CONTEXT.next_minus(quotient), _CONTEXT.next_plus(quotient)
