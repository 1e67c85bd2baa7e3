"""A rigorous lower bound on the 0-1 loss, from dual values, without a solver.

Let α [k] be any numbers, h_y(v) = p_y·[v ≠ y] − α_y, and

    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

If F ≥ 0 at every label and at one value that is no label, every ε-DP randomizer changes a label
with a probability of at least Σα. The proof is that of ``absolute_bound`` with another loss. All
arithmetic is in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm


def zero_one_dual_is_feasible(
    weights: Sequence[int], exp_upper: Fraction, alpha: Sequence[Fraction]
) -> bool:
    """Whether F ≥ 0 everywhere, decided exactly, in O(k).

    ``weights`` [k] integers ≥ 0 in proportion to the prior and not all 0, ``exp_upper`` ≥ e^ε,
    ``alpha`` [k] exact. Raises ValueError if they are not as described.
    """
    if min(weights) < 0 or not any(weights) or exp_upper < 1 or len(alpha) != len(weights):
        raise ValueError("weights must be >= 0 and not all 0, and exp_upper at least 1")
    # Times Σ weights and a common denominator: p_y becomes an integer w, α_y an integer a.
    unit, total = lcm(*(number.denominator for number in alpha)), sum(weights)
    growth = exp_upper - 1
    one, extra = growth.denominator, growth.numerator

    def term(h: int) -> int:
        return one * h + extra * min(h, 0)

    pairs = [(w * unit, int(a * unit) * total) for w, a in zip(weights, alpha, strict=True)]
    nowhere = sum(term(w - a) for w, a in pairs)
    return nowhere >= 0 and all(nowhere - term(w - a) + term(-a) >= 0 for w, a in pairs)
