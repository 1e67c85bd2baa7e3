"""Promises that protect hardly anybody: a large ε, or a δ that allows publishing a label."""

import math
from fractions import Fraction

from labeldp_verify.printable import at_most, percent_at_most

BEFORE, AFTER = Fraction(1, 100), Fraction(99, 100)
_ODDS = AFTER / (1 - AFTER) * (1 - BEFORE) / BEFORE
LARGE = math.log(_ODDS)  # 9.19
"""ε at which an observer who was 1% sure of a label can become 99% sure of it."""


def weak_promise(
    epsilon: float | Fraction, delta: float | Fraction = 0, units: int | None = None
) -> list[str]:
    """Warnings about a promise of (ε, δ) for each of ``units`` labels or persons, if known."""
    warnings = []
    if epsilon > LARGE:
        other = float(1 / BEFORE - 1) * math.exp(-float(epsilon))  # odds of the other labels
        warnings.append(
            f"ε = {at_most(epsilon)} protects hardly any label: an observer who was 1% sure of one "
            f"can become {percent_at_most(1 / (1 + other), 3)} sure of it"
        )
    if units is not None and delta * units >= 1:
        warnings.append(
            f"δ = {float(delta):g} is at least 1/{units:,}: such a δ would even allow publishing "
            "the labels of a row or person drawn at random; choose a much smaller one"
        )
    return warnings
