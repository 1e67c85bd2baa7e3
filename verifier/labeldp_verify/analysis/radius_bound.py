"""A rigorous lower bound on the squared or absolute loss of very many labels, from few numbers.

One dual value a label would outweigh the tables of a file. Here a label has a radius r_y ≥ 0
instead, with g(r) = ½r² or r, and α_y = p_y·g(r_y), so that

    h_y(v) = p_y·(g(|v − y|) − g(r_y)) < 0 exactly where |v − y| < r_y,
    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

If F ≥ 0 on the whole real line, every ε-DP randomizer loses at least Σα: that holds for any α
(``lower_bound.py``, ``absolute_and_zero_one_bounds.py``). The radii are stated at a few labels, as
whole multiples of a unit; between two of these they follow a line, rounded down to the unit.

F grows without end on both sides, and it bends downwards wherever a sign changes, at the y ± r_y.
So it is least where its slope passes zero inside a piece (squared), or at a label (absolute).
e^ε is replaced by a rational above it, which only makes F smaller. All arithmetic is in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

_MOST_STEPS = 2**40  # of a radius, so that a line between two knots stays within int64
_MOST_LABELS = 2**21
_INT64_BITS = 62
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
        raise ValueError("there is not one radius a knot")
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
        raise ValueError("radii bound the squared and the absolute loss only")
    if min(weights) < 0 or not any(weights) or exp_upper < 1:
        raise ValueError("weights must be >= 0 and not all 0, and exp_upper at least 1")
    if not len(labels) == len(weights) == len(radii):
        raise ValueError("labels, weights and radii must be equally many")
    unit, common = lcm(labels.unit, radii.unit), gcd(*weights)
    y, r = labels.over(unit), radii.over(unit)
    y = y - (y[0] + y[-1]) // 2  # shorter numbers
    w = whole([weight // common for weight in weights])
    total = int(w.sum())
    if loss == "squared":
        proved = _squared_is_feasible(y, w, r, exp_upper - 1)
        return Fraction(int((w * r * r).sum()), 2 * total * unit**2) if proved else None
    proved = _absolute_is_feasible(y, w, r, exp_upper - 1)
    return Fraction(int((w * r).sum()), total * unit) if proved else None


def _squared_is_feasible(y: Whole, w: Whole, r: Whole, growth: Fraction) -> bool:
    """With h = ½w·(v − y + r)·(v − y − r), 2·F is A·v² − 2B·v + C on each piece."""
    one, extra = growth.denominator, growth.numerator
    low, high = _short(y - r), _short(y + r)
    ends = np.concatenate([low, high])
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    around, within = [], []  # of A, B and C: of all labels, and of those that are negative
    for term in map(_short, (w, w * y, w * _long(low) * high)):
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


def _absolute_is_feasible(y: Whole, w: Whole, r: Whole, growth: Fraction) -> bool:
    """With h = w·(|v − y| − r): F at every label, from how often its slope changed before."""
    one, extra = growth.denominator, growth.numerator
    total, whole_moment, heights = int(w.sum()), int((w * y).sum()), int((w * r).sum())
    places = np.concatenate([_short(y - r), _short(y), _short(y + r)])
    order, short = np.argsort(places, kind="stable"), _short(w)
    slope = fall = mass = moment = 0  # before a block
    for first in range(0, len(order), _BLOCK):
        chosen = order[first : first + _BLOCK]
        side, label = np.divmod(chosen, len(y))
        is_label = side == 1
        at, weight = _long(places[chosen]), short[label]
        bends = np.where(is_label, 2 * weight, -weight)
        turns, mine = _long(bends) * at, np.where(is_label, weight, 0)
        slopes, falls, masses, moments = (
            before + _long(np.cumsum(term))
            for before, term in (
                (slope, bends),
                (fall, turns),
                (mass, mine),
                (moment, _long(mine) * at),
            )
        )
        inner = slopes * at - falls  # Σ min(h, 0)
        outer = (2 * masses - total) * at - 2 * moments + (whole_moment - heights)
        if not np.all((one * outer + extra * inner)[is_label] >= 0):
            return False
        slope, fall, mass, moment = slopes[-1], falls[-1], masses[-1], moments[-1]
    return True


def _short(numbers: Whole) -> NDArray[np.int64] | Whole:
    """As int64 where even four times their sum fits."""
    bits = max(int(numbers.max()), -int(numbers.min())).bit_length()
    fits = bits + len(numbers).bit_length() + 2 <= _INT64_BITS
    return numbers.astype(np.int64) if fits else numbers


def _long(numbers: NDArray[Any]) -> Whole:
    return numbers.astype(object)
