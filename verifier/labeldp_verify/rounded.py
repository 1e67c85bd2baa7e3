"""Bounds for people, rounded to the cautious side, so that they stay bounds.

A float is read as the shortest decimal that denotes it: .8 stays .8, though the float is a little
above.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def at_most(bound: float | Fraction, digits: int = 6) -> str:
    """An upper bound in at most ``digits`` ≤ 15 significant digits, not below the number."""
    return f"{_rounded(bound, digits, ROUND_CEILING):.{digits}g}"


def at_least(bound: float | Fraction, digits: int = 6) -> str:
    """A lower bound in at most ``digits`` ≤ 15 significant digits, not above the number."""
    return f"{_rounded(bound, digits, ROUND_FLOOR):.{digits}g}"


def percent_at_most(share: float, digits: int = 2) -> str:
    """An upper bound of a share as a percentage; from 99% on in three digits at least."""
    return f"{at_most(100 * share, digits if share <= 0.99 else max(digits, 3))}%"


def up_to(bound: float | Fraction) -> str:
    """An upper bound in six decimals, not below the number."""
    return f"{math.ceil(_exact(bound) * 10**6) / 10**6:.6f}"


def down_to(bound: float | Fraction) -> str:
    """A lower bound in four decimals, not above the number."""
    return f"{math.floor(_exact(bound) * 10**4) / 10**4:.4f}"


def _rounded(bound: float | Fraction, digits: int, rounding: str) -> float:
    if not math.isfinite(bound):
        return float(bound)
    numerator, denominator = _exact(bound).as_integer_ratio()
    return float(Context(digits, rounding).divide(Decimal(numerator), Decimal(denominator)))


def _exact(bound: float | Fraction) -> Fraction:
    return Fraction(repr(bound)) if isinstance(bound, float) else Fraction(bound)
