"""Bounds for people, rounded to the cautious side, so that they stay bounds.

A float is read as the shortest decimal that denotes it: .8 stays .8, though the float is a little
above.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal


def at_most(bound: float | Fraction, digits: int = 6) -> str:
    """An upper bound in at most ``digits`` ≤ 15 significant digits, not below the number."""
    return f"{_rounded(bound, digits, ROUND_CEILING):.{digits}g}"


def at_least(bound: float | Fraction, digits: int = 6) -> str:
    """A lower bound in at most ``digits`` ≤ 15 significant digits, not above the number."""
    return f"{_rounded(bound, digits, ROUND_FLOOR):.{digits}g}"


def percent_at_most(share: float, digits: int = 2) -> str:
    """An upper bound of a share as a percentage; from 99% on in as many digits as keep it below
    100%, and three at least."""
    first = digits if share <= 0.99 else max(digits, 3)
    texts = [at_most(100 * share, more) for more in range(first, 16)]
    shown = texts[0] if share >= 1 else next((one for one in texts if one != "100"), "100")
    return f"{shown}%"


def probability(share: float, digits: int = 3, kind: Literal["g", "f", "%"] = "g") -> str:
    """A probability rounded to the nearest; 0 and 1 (0% and 100%) only where it is exactly that.

    ``kind`` is that of Python's formats. Near 0 and 1 it has as many digits as it needs.
    """
    ends = (0.0, 100.0 if kind == "%" else 1.0)
    for more in range(digits, 18 if 0 < share < 1 else digits):
        text = f"{share:.{more}{kind}}"
        if float(text.rstrip("%")) not in ends:
            return text
    return f"{share:.{digits}{kind if share in (0, 1) else 'g'}}"


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
