"""From the ε of a config to an exact number, and to a rational that is not above e^ε."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999)


def exact(epsilon: float) -> Fraction:
    """The decimal that ε is written as, in the config and in the statement: 1/10 for 0.1."""
    return Fraction(repr(epsilon))


def exp_lower(epsilon: Fraction) -> Fraction:
    """A rational at most e^ε, within 10^-50 of it relatively; 0 ≤ ε ≤ 1000 exact.

    ``decimal`` rounds divisions and exp correctly, so that the next decimal below the result for an
    argument that is not above ε is a lower bound.
    """
    quotient = _CONTEXT.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    if Fraction(quotient) > epsilon:
        quotient = _CONTEXT.next_minus(quotient)
    return max(Fraction(_CONTEXT.next_minus(quotient.exp(_CONTEXT))), Fraction(1))
