"""Dual values for the 0-1 loss: how often any ε-DP randomizer must change a label.

With h_y(v) = p_y·[v ≠ y] − α_y and F(v) = Σ h_y(v) + (e^ε − 1)·Σ min(h_y(v), 0), F ≥ 0 makes Σ α
a lower bound on the loss (``docs/privacy.md``, Theorem 5). For 0 ≤ α ≤ p only h_v is negative at v,
so F(v) = 1 − Σα − p_v − (e^ε − 1)·α_v. With c = 1 − Σα the best choice is
α_y = min(p_y, (c − p_y)/(e^ε − 1)), and c = w_k of RRWithPrior (Algorithm 2) is the fixed point.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def dual_of_zero_one(prior: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """[k] α for a prior [k] that sums to one."""
    e = math.exp(epsilon)
    ranked = np.sort(prior)[::-1]
    c = np.max(e * np.cumsum(ranked) / (e + np.arange(len(prior))))
    if epsilon == 0:
        return np.where(prior > c, 0.0, prior)
    alpha: NDArray[np.float64] = np.minimum(prior, (c - prior) / math.expm1(epsilon))
    return alpha
