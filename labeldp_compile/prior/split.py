"""Divide ε between the prior and the label, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp_compile.errors import BudgetError
from labeldp_compile.spec.model import PrivacySpec

_DIGITS = 6


def split_epsilon(privacy: PrivacySpec, rows: int, labels: int) -> tuple[Fraction, Fraction]:
    """(ε₁ for the private prior, ε₂ for the label), with ε₁ + ε₂ = ε exactly.

    ``auto`` is ε₁ = √(k/n), rounded down to 6 significant digits: the choice under which the loss
    of estimating the prior vanishes as n grows (RR-on-Bins paper, Theorem 7). Raises BudgetError
    unless that leaves something for the label, i.e. unless n > k/ε².
    """
    epsilon = Fraction(privacy.epsilon)
    if privacy.split != "auto":
        return Fraction(privacy.split.prior), Fraction(privacy.split.label)
    if rows * epsilon**2 <= labels:
        needed = math.floor(labels / epsilon**2) + 1
        raise BudgetError(
            f"split: auto spends ε₁ = √(k/n) on the prior, and with k = {labels} labels and "
            f"n = {rows} rows that is all of ε = {float(epsilon):g} (it takes n ≥ {needed}). "
            "Two ways out: give the parts yourself, as in split: {prior: …, label: …}; "
            "or use a prior that costs nothing (prior: {kind: public} or {kind: uniform})"
        )
    root = math.sqrt(labels / rows)
    digits = _DIGITS - 1 - math.floor(math.log10(root))
    prior = Fraction(math.floor(root * 10**digits), 10**digits)
    return prior, epsilon - prior
