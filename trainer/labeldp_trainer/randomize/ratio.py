"""From the ε of a config to an exact number, and to a rational that is not above e^ε."""

from __future__ import annotations

from fractions import Fraction

from labeldp_verify.analysis.bounds import exp_lower

__all__ = ["exact", "exp_lower"]


def exact(epsilon: float) -> Fraction:
    """The decimal that ε is written as, in the config and in the statement: 1/10 for 0.1."""
    return Fraction(repr(epsilon))
