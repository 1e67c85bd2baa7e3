"""How far an output in float64 can lie from the exact number that it stands for."""

from __future__ import annotations

from fractions import Fraction

from labeldp_compile.randomizer import AdditiveRandomizer, Randomizer

_SIGNIFICANT_BITS = 53


def output_rounding(randomizer: Randomizer) -> Fraction:
    """A bound on |float64 output − exact output|; zero where every output is exact.

    Outputs of windows and tables are float64 numbers themselves. A lattice point t·unit + origin
    is rounded twice, unless all of them are multiples of one power of two that float64 can hold.
    """
    if not isinstance(randomizer, AdditiveRandomizer):
        return Fraction(0)
    r = randomizer
    furthest = max(abs(r.low), abs(r.high)) * Fraction(r.unit)
    largest = furthest + abs(Fraction(r.origin))
    common = max(Fraction(r.unit).denominator, Fraction(r.origin).denominator)
    if largest * common < 1 << _SIGNIFICANT_BITS:
        return Fraction(0)
    # One rounding of the product, one of the sum: half a unit in the last place each; the sum may
    # be rounded up to the next power of two.
    return _half_ulp(furthest) + _half_ulp(2 * largest)


def _half_ulp(size: Fraction) -> Fraction:
    """At least half the distance of float64 numbers up to ``size`` in absolute value."""
    exponent = size.numerator.bit_length() - size.denominator.bit_length() + 1  # size < 2^exponent
    return Fraction(2) ** (exponent - _SIGNIFICANT_BITS - 1)
