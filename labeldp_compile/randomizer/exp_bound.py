"""Rational bounds of e^ε and of logarithms, by interval arithmetic with directed rounding.

Nothing here returns a float that could decide privacy: the bounds are exact rationals.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from mpmath import iv, libmp

_PRECISION = 320  # bits; e^ε up to ε = 60 keeps more than 200 bits behind the point
LOG_DIGITS = 12  # the stated bound on a logarithm is the least multiple of 10^-12


def exp_lower(epsilon: Fraction) -> Fraction:
    """A rational at most e^ε, within 2^-200 of it relatively; ε ≥ 0 exact."""
    return _exp_interval(epsilon)[0]


def exp_upper(epsilon: Fraction) -> Fraction:
    """A rational at least e^ε, within 2^-200 of it relatively; ε ≥ 0 exact."""
    return _exp_interval(epsilon)[1]


def log_bound(ratio: Fraction) -> Decimal:
    """The least multiple of 10^-12 that is provably at least ln(ratio); ratio ≥ 1."""
    if ratio == 1:
        return Decimal(0)
    _, upper = log_interval(ratio)
    unit = Decimal(1).scaleb(-LOG_DIGITS)
    guess = (Decimal(upper.numerator) / Decimal(upper.denominator)).quantize(unit, ROUND_CEILING)
    while exp_lower(Fraction(guess)) < ratio:
        guess += unit
    while exp_lower(Fraction(guess - unit)) >= ratio:
        guess -= unit
    return guess


def log_interval(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of ln(value) for an exact value > 0."""
    iv.prec = _PRECISION
    enclosure = iv.log(iv.mpf(value.numerator) / iv.mpf(value.denominator))
    return _rational(enclosure.a), _rational(enclosure.b)


def _exp_interval(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    iv.prec = _PRECISION
    enclosure = iv.exp(iv.mpf(epsilon.numerator) / iv.mpf(epsilon.denominator))
    return _rational(enclosure.a), _rational(enclosure.b)


def _rational(end: iv.mpf) -> Fraction:
    # An end of an interval is an interval of width zero: take its only binary float, exactly.
    low, _ = end._mpi_
    return Fraction(*libmp.to_rational(low))
