"""Rigorous lower bounds on the absolute and the 0-1 loss, from dual values, without a solver.

Let α [k] be any numbers, h_y(v) = p_y·|v − y| − α_y, and

    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

If F ≥ 0 on the whole real line, every ε-DP randomizer M loses at least Σα. Proof, for finitely many
outputs (limits cover the rest): with m(v) = min_y M(v | y), DP gives m(v) ≤ M(v | y) ≤ e^ε·m(v),
hence M(v | y)·h_y(v) ≥ m(v)·(h_y(v) + (e^ε − 1)·min(h_y(v), 0)). This uses the lower bound where
h_y is positive, and the upper one where it is negative. Summed over y, Σ_y M(v | y)·h_y(v) ≥
m(v)·F(v) ≥ 0; summed over v, Σ_v Σ_y M(v | y)·p_y·|v − y| ≥ Σ_y α_y, as Σ_v M(v | y) = 1.

F is piecewise linear and does not fall towards either infinity. Its slope rises only at labels:
where some h_y changes its sign, min(h_y, 0) bends downwards. So its least value is at a label, and
only labels must be checked. e^ε is replaced by a rational above it, which only makes F smaller. All
arithmetic is in integers.

The 0-1 loss: with [v ≠ y] in place of |v − y|, the proof is the same. F is constant except at the
labels. If F ≥ 0 at every label and at one value that is not a label, every ε-DP randomizer changes
a label with a probability of at least Σα.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.exact_numbers import Whole

_INT64_BITS = 62


def absolute_holds(y: Whole, w: Whole, a: Whole, growth: Fraction) -> bool:
    """Whether F ≥ 0 on the whole real line for h_j = w_j·|v − y_j| − a_j, in O(k log k).

    ``y`` [k] increasing, ``w`` [k] ≥ 0 and not all 0, ``growth`` is e^ε − 1 or more.
    """
    # Σ min(h_j, 0): on each side of its label h_j is a line, negative up to some label; constants
    # and slopes add up over ranges of labels, which begin and end at those noted here.
    low = np.flatnonzero(a > 0)
    at, weight, height = y[low], w[low], a[low]
    reach = np.where(weight == 0, y[-1] - y[0], height // np.maximum(weight, 1))
    first = np.searchsorted(short(y), short(at - reach))
    behind = np.searchsorted(short(y), short(at + reach), side="right")
    weight, moment, height = map(short, (weight, weight * at, height))
    kind = np.result_type(weight, moment, height)
    level, slope = np.zeros((2, len(y) + 1), dtype=kind)
    for places, constant, rise in (
        (first, moment - height, -weight),
        (low, -2 * moment, 2 * weight),
        (behind, moment + height, -weight),
    ):
        np.add.at(level, places, constant)
        np.add.at(slope, places, rise)
    inner = np.cumsum(level)[:-1] + np.cumsum(slope)[:-1] * y
    mass, moments = (np.cumsum(short(term)).astype(object) for term in (w, w * y))
    outer = (2 * mass - mass[-1]) * y - 2 * moments + (moments[-1] - a.sum())
    return bool(np.all(growth.denominator * outer + growth.numerator * inner >= 0))


def zero_one_holds(w: Sequence[int], a: Sequence[int], growth: Fraction) -> bool:
    """Whether F ≥ 0 everywhere for h_j = w_j·[v ≠ y_j] − a_j, in O(k)."""

    def term(h: int) -> int:
        return growth.denominator * h + growth.numerator * min(h, 0)

    pairs = list(zip(w, a, strict=True))
    nowhere = sum(term(weight - level) for weight, level in pairs)
    return nowhere >= 0 and all(nowhere - term(w - a) + term(-a) >= 0 for w, a in pairs)


def short(numbers: Whole) -> NDArray[Any]:
    """As int64 where even four times their sum fits."""
    bits = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0))).bit_length()
    fits = bits + len(numbers).bit_length() + 2 <= _INT64_BITS
    return numbers.astype(np.int64) if fits else numbers
