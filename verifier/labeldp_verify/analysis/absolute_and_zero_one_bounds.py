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

from labeldp_verify.forms.exact_numbers import ExactNumbers


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
    if not len(labels) == len(weights) == len(alpha):
        raise ValueError("labels, weights and dual values must be equally many")
    # Times Σ weights and a common denominator: h_j = w_j·|v − y_j| − a_j in integers.
    points, duals = ExactNumbers.of(labels), ExactNumbers.of(alpha)
    unit, total = lcm(points.unit, duals.unit), sum(weights)
    y, a = points.over(unit).tolist(), (duals.over(unit) * total).tolist()
    growth = exp_upper - 1
    one, extra = growth.denominator, growth.numerator
    k, span = len(y), y[-1] - y[0]
    # Σ min(h_j, 0): on each side of its label h_j is a line, negative up to some label; constants
    # and slopes add up over ranges of labels, which begin and end at those noted here.
    level, slope = [0] * (k + 1), [0] * (k + 1)
    for j, (weight, height, at) in enumerate(zip(weights, a, y, strict=True)):
        if height > 0:
            reach = height // weight if weight else span  # h_j ≤ 0 up to this distance
            first, behind, moment = (
                bisect_left(y, at - reach),
                bisect_right(y, at + reach),
                weight * at,
            )
            level[first] += moment - height
            level[j] -= 2 * moment
            level[behind] += moment + height
            slope[first] -= weight
            slope[j] += 2 * weight
            slope[behind] -= weight
    moments = [weight * at for weight, at in zip(weights, y, strict=True)]
    mass, moment, heights = accumulate(weights), accumulate(moments), sum(a)
    whole_moment = sum(moments)
    sums = zip(y, mass, moment, accumulate(level), accumulate(slope), strict=False)
    return all(
        one * (at * (2 * m - total) - 2 * mm + whole_moment - heights)
        + extra * (constant + rise * at)
        >= 0
        for at, m, mm, constant, rise in sums
    )


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
    duals, total = ExactNumbers.of(alpha), sum(weights)
    unit = duals.unit
    growth = exp_upper - 1
    one, extra = growth.denominator, growth.numerator

    def term(h: int) -> int:
        return one * h + extra * min(h, 0)

    heights = (duals.numerators * total).tolist()
    pairs = [(w * unit, a) for w, a in zip(weights, heights, strict=True)]
    nowhere = sum(term(w - a) for w, a in pairs)
    return nowhere >= 0 and all(nowhere - term(w - a) + term(-a) >= 0 for w, a in pairs)
