"""A rigorous lower bound on the squared or absolute loss of very many labels, from few numbers.

One dual value per label would take more space than the tables of a file. Instead, a label has a
radius r_y ≥ 0, with g(r) = ½r² or r, and α_y = p_y·g(r_y), so that

    h_y(v) = p_y·(g(|v − y|) − g(r_y)) < 0 exactly where |v − y| < r_y,
    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

If F ≥ 0 on the whole real line, every ε-DP randomizer loses at least Σα: that holds for any α
(``lower_bound.py``, ``absolute_and_zero_one_bounds.py``). The radii are stated at a few labels, as
integer multiples of a unit. Between two of these labels they follow a line, rounded down to the
unit.

F grows without limit on both sides, and bends downwards where a sign changes, at the y ± r_y. So
its least value is where its slope passes zero inside a piece (squared), or at a label (absolute).
e^ε is replaced by a rational above it, which only makes F smaller. All arithmetic is in integers.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.absolute_and_zero_one_bounds import absolute_holds, short
from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.analysis.lower_bound import require_weights
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

_MOST_STEPS = 2**40  # of a radius, so that a line between two knots stays within int64
_MOST_LABELS = 2**21
_BLOCK = 2**16  # pieces at a time: less memory


def radii_of(knots: Sequence[int], radii: Sequence[int], labels: int) -> NDArray[np.int64]:
    """The radius [k] of every label, in steps of the unit.

    Args:
        knots: [n] numbers of labels, increasing, the first and the last label among them.
        radii: [n] their radii in steps, 0 … 2^40.
        labels: k, at least 2.

    Raises:
        ValueError: the arguments are not as described.
    """
    if not 2 <= len(knots) == len(radii) <= labels <= _MOST_LABELS:
        raise ValueError("there must be one radius for each knot")
    if not all(type(n) is int for n in (*knots, *radii)):
        raise ValueError("knots and radii are whole numbers")
    if not (min(radii) >= 0 and max(radii) <= _MOST_STEPS):
        raise ValueError("a radius is negative or too long")
    if knots[0] != 0 or knots[-1] != labels - 1:
        raise ValueError("the knots do not reach from the first to the last label")
    if any(a >= b for a, b in pairwise(knots)):
        raise ValueError("the knots do not increase")
    at, height = np.array(knots, np.int64), np.array(radii, np.int64)
    wide = np.diff(at)
    number = np.arange(labels - 1)
    piece = np.repeat(np.arange(wide.size), wide)
    rise = np.diff(height)[piece] * (number - at[piece])
    return np.append(height[piece] + rise // wide[piece], height[-1])


def radius_bound(
    labels: ExactNumbers,
    weights: Sequence[int],
    exp_upper: Fraction,
    radii: ExactNumbers,
    loss: Loss,
) -> Fraction | None:
    """The bound Σα if F ≥ 0 on the whole real line, decided exactly; None if it is not.

    ``labels`` [k] increasing, ``weights`` [k] integers ≥ 0 in proportion to the prior and not all
    0, ``exp_upper`` ≥ e^ε, ``radii`` [k] ≥ 0, ``loss`` squared or absolute. O(k log k).
    """
    if loss not in ("squared", "absolute"):
        raise ValueError("radii can only bound the squared and the absolute loss")
    require_weights(weights, exp_upper)
    if not len(labels) == len(weights) == len(radii):
        raise ValueError("there must be one weight and one radius for each label")
    unit, common = lcm(labels.unit, radii.unit), gcd(*weights)
    y, r = labels.over(unit), radii.over(unit)
    y = y - (y[0] + y[-1]) // 2  # shorter numbers
    w = whole([weight // common for weight in weights])
    total, growth = int(w.sum()), exp_upper - 1
    if loss == "squared":
        proved = _squared_holds(y, w, r, growth)
        return Fraction(int((w * r * r).sum()), 2 * total * unit**2) if proved else None
    proved = absolute_holds(y, w, w * r, growth)
    return Fraction(int((w * r).sum()), total * unit) if proved else None


def _squared_holds(y: Whole, w: Whole, r: Whole, growth: Fraction) -> bool:
    """With h = ½w·(v − y + r)·(v − y − r), 2·F is A·v² − 2B·v + C on each piece."""
    one, extra = growth.denominator, growth.numerator
    low, high = short(y - r), short(y + r)
    ends = np.concatenate([low, high])
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    around, within = [], []  # of A, B and C: of all labels, and of those that are negative
    for term in map(short, (w, w * y, w * _long(low) * high)):
        around.append(one * int(term.sum()))
        within.append(np.cumsum(np.concatenate([term, -term])[order]))
    # Outside all pieces no h is negative. Where the slope is zero at an end, that end counts, too.
    for first in range(0, len(ends) - 1, _BLOCK):
        block = slice(first, min(first + _BLOCK, len(ends) - 1))
        start, stop = ends[block], ends[block.start + 1 : block.stop + 1]
        a, b = (n + extra * _long(side[block]) for n, side in zip(around, within[:2], strict=False))
        least = (a * start <= b) & (b <= a * stop)
        a, b = a[least], b[least]
        if not np.all(a * (around[2] + extra * _long(within[2][block][least])) >= b * b):
            return False
    return True


def _long(numbers: NDArray[Any]) -> Whole:
    return numbers.astype(object)
