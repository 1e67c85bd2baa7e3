"""The ideal noise inside one period, as fixed-point numbers h(0) ≥ h(1) ≥ … ≥ h(D).

Both noises are symmetric and fall by e^ε a period: Pr[n] ∝ e^(−ε·j)·h(m) for |n| = j·D + m,
with h(0) = 1 and h(D) = e^−ε. The numbers are rounded so that h(0)/h(D) never exceeds e^ε.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, repeat

from labeldp_verify.analysis import exp_lower, exp_upper

FIXED_POINT_BITS = 128
_ONE = 1 << FIXED_POINT_BITS


def ratio_below(epsilon: Fraction) -> Fraction:
    """A rational at most e^ε whose denominator is 2^128, within 2^-128 of it; ε > 0 exact."""
    return Fraction(math.floor(exp_lower(epsilon) * _ONE), _ONE)


def laplace_magnitudes(epsilon: Fraction, period: int) -> list[int]:
    """[D + 1] 2^128·e^(−ε·m/D), to within D units.

    Definition 17 of the optimal unbiased randomizers paper (2023) with Δ = D; on a fine lattice it
    stands for the continuous Laplace distribution of Definition 18.
    """
    least = _least(epsilon)
    factor = math.floor(_ONE / exp_upper(epsilon / period))
    falling = accumulate(
        repeat(factor, period - 1), lambda h, f: h * f >> FIXED_POINT_BITS, initial=_ONE
    )
    return [*(max(h, least) for h in falling), least]


def staircase_magnitudes(epsilon: Fraction, period: int, width: int) -> list[int]:
    """[D + 1] 2^128 on the first ``width`` points, and 2^128·e^−ε behind them; 1 ≤ width ≤ D.

    Definition 19 of the optimal unbiased randomizers paper (2023) with r = width and Δ = D; on a
    fine lattice it stands for Definition 20 with γ = width/D.
    """
    return [_ONE] * width + [_least(epsilon)] * (period + 1 - width)


def _least(epsilon: Fraction) -> int:
    return math.ceil(_ONE / ratio_below(epsilon))
