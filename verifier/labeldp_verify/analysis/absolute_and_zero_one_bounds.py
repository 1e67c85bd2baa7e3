"""Rigorous lower bounds on the absolute and the 0-1 loss, from dual values, without a solver.

Let α [k] be any numbers, h_y(v) = p_y·|v − y| − α_y, and

    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

If F ≥ 0 on the whole real line, every ε-DP randomizer M loses at least Σα. Proof, for finitely many
outputs (limits cover the rest): with m(v) = min_y M(v | y), DP gives m(v) ≤ M(v | y) ≤ e^ε·m(v),
hence M(v | y)·h_y(v) ≥ m(v)·(h_y(v) + (e^ε − 1)·min(h_y(v), 0)), by the lower bound where h_y is
positive and by the upper one where it is negative. Summed over y, Σ_y M(v | y)·h_y(v) ≥ m(v)·F(v)
≥ 0; summed over v, Σ_v Σ_y M(v | y)·p_y·|v − y| ≥ Σ_y α_y, as Σ_v M(v | y) = 1.

F is piecewise linear and falls towards neither infinity. Its slope rises only at labels: where some
h_y changes its sign, min(h_y, 0) bends downwards. So its least value is at a label, and it is
enough to look there. e^ε is replaced by a rational above it, which only makes F smaller. All
arithmetic is in integers.

The 0-1 loss: with [v ≠ y] in place of |v − y| the proof is the same, and F is constant but at the
labels; F ≥ 0 at every label and at one value that is no label makes every ε-DP randomizer change a
label with a probability of at least Σα.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import lcm


def absolute_dual_is_feasible(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    exp_upper: Fraction,
    alpha: Sequence[Fraction],
) -> bool:
    """Whether F ≥ 0 on the whole real line, decided exactly, in O(k log k).

    ``labels`` [k] increasing, ``weights`` [k] integers ≥ 0 in proportion to the prior and not all
    0, ``exp_upper`` ≥ e^ε, ``alpha`` [k] exact, in units of the labels. Raises ValueError if the
    lengths differ or if ``weights`` or ``exp_upper`` (≥ 1) are not as described.
    """
    if min(weights) < 0 or not any(weights) or exp_upper < 1:
        raise ValueError("weights must be >= 0 and not all 0, and exp_upper at least 1")
    # Times Σ weights and a common denominator: h_j = w_j·|v − y_j| − a_j in integers.
    unit = lcm(*(number.denominator for number in (*labels, *alpha)))
    y = [int(label * unit) for label in labels]
    total = sum(weights)  # once: it takes as long as the rest of a label's work
    a = [int(number * unit) * total for number in alpha]
    growth = exp_upper - 1
    one, extra = growth.denominator, growth.numerator
    k = len(y)
    # On each side of its label h_j is a line: constants and slopes add up over ranges of labels.
    level, slope = [0] * (k + 1), [0] * (k + 1)

    def add(first: int, last: int, factor: int, j: int, side: int) -> None:
        """Add factor·h_j at the labels first ≤ i < last, all on one side of y_j."""
        for index, sign in ((first, 1), (last, -1)):
            level[index] += sign * factor * (-side * weights[j] * y[j] - a[j])
            slope[index] += sign * factor * side * weights[j]

    for j, (weight, height) in enumerate(zip(weights, a, strict=True)):
        add(0, j, one, j, -1)
        add(j, k, one, j, 1)
        if height > 0:
            reach = height // weight if weight else y[-1] - y[0]  # h_j ≤ 0 up to this distance
            add(bisect_left(y, y[j] - reach), j, extra, j, -1)
            add(j, bisect_right(y, y[j] + reach), extra, j, 1)
    totals = zip(accumulate(level), accumulate(slope), y, strict=False)
    return all(constant + rise * v >= 0 for constant, rise, v in totals)


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
