"""Rigorous bounds of e^x and ln x from the standard library's decimal arithmetic.

``decimal`` rounds exp and ln correctly to the precision asked for, so that the next decimal below
(above) the result is a lower (upper) bound. No floats are used.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

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
