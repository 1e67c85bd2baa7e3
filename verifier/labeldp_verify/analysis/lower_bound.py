"""Rigorous lower bounds on the noisy label loss, from dual values or radii, without a solver."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, pairwise
from math import gcd, isqrt, lcm
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole

# ---- A rigorous lower bound on the noisy label loss from dual values; its proof for the squared
# loss.
#
# Let α, β [k] be any numbers, h_y(v) = ½p_y(v − y)² − α_y − β_y·v, and
#
#     F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).
#
# Let M be an ε-DP randomizer with finitely many outputs (limits cover the rest) and
# m(v) = min_y M(v | y). DP gives m(v) ≤ M(v | y) ≤ e^ε·m(v), hence Σ_y M(v | y)·h_y(v) ≥ m(v)·F(v).
# So if F ≥ 0 on the whole real line, summing over v gives
#
#     loss of M ≥ Σ_y α_y + Σ_y β_y·E[M(y)],
#
# which is Σα + Σβ·y for every unbiased M, and Σα for every M if β = 0. If |E[M(y)] − y| ≤ τ it is
# at least Σα + Σβ·y − τ·Σ|β|; and loss + λ·Σ p·(E[M(y)] − y)² is at least Σα + Σβ·y − Σ β²/(4λp),
# where β must be zero wherever p is.
#
# F is quadratic between the roots of the h_y. Here every root is enclosed between neighbours of a
# fine dyadic lattice by exact sign tests; between enclosures the minimum of an exact quadratic is
# compared with zero, and inside an enclosure each piece is bounded from below on its own. e^ε is
# replaced by a rational above it, which only makes F smaller. All arithmetic is in integers.


@dataclass(frozen=True)
class BiasRule:
    """The class of randomizers of a bound, by their bias d_y = E[M(y)] − y.

    ``unbiased``: d = 0. ``max``: |d_y| ≤ amount. ``penalty``: all, and the bound is on the loss
    plus amount·Σ p_y·d_y². ``any``: all (β = 0).
    """

    kind: Literal["unbiased", "max", "penalty", "any"]
    amount: Fraction = Fraction(0)


def unbiased_tolerance(labels: Sequence[Fraction]) -> Fraction:
    """The bias up to which a randomizer counts as unbiased: 2^-40 of the range of the labels.

    Whole counts of words of 62 bits stay below it; a file with shorter words may not.
    """
    return (labels[-1] - labels[0]) / 2**40


_MOST_BITS, _ROUNDED_BITS = 2_000, 1_000  # a certificate holds 1,000 digits of a number
LATTICE_BITS = 160  # enclosures are 2^-160 of the labels' range wide


def is_nonnegative(a: int, b: int, c: int, first: int | None, last: int | None) -> bool:
    """Whether a·x² + b·x + c ≥ 0 on the real interval [first, last], for integers and a ≥ 0.

    None means unbounded.
    """
    if a == 0:
        slopes_away = (first is not None or b <= 0) and (last is not None or b >= 0)
        ends = [b * n + c >= 0 for n in (first, last) if n is not None]
        return slopes_away and all(ends) and (bool(ends) or c >= 0)
    if first is not None and -b <= 2 * a * first:  # the vertex lies left of it
        return (a * first + b) * first + c >= 0
    if last is not None and -b >= 2 * a * last:
        return (a * last + b) * last + c >= 0
    return 4 * a * c >= b * b


def root_steps(a: int, b: int, c: int) -> list[int]:
    """The whole n whose interval [n, n + 1] holds a change of sign of a·x² + b·x + c, increasing.

    For integers and a ≥ 0.
    """
    if a == 0:
        return [] if b == 0 else [-c // b]
    discriminant = b * b - 4 * a * c
    if discriminant <= 0:
        return []
    root = isqrt(discriminant)  # √d lies in [root, root + 1)
    low = (-b - root - 1) // (2 * a)
    high = (-b + root) // (2 * a)
    # The true roots lie in [low, low + 2) and [high, high + 2): settle by exact signs.
    n = low + 1
    low += int(2 * a * n + b < 0 < (a * n + b) * n + c)
    n = high + 1
    high += int((a * n + b) * n + c < 0)
    return [low, high]


def low_in_step(a: int, b: int, c: int, n: int) -> int:
    """A lower bound on the real interval [n, n + 1]: a convex a·x² sags less than a below."""
    at = (a * n + b) * n + c
    return min(at, at + a * (2 * n + 1) + b) - a


def bound_value(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    alpha: Sequence[Fraction],
    beta: Sequence[Fraction],
    rule: BiasRule,
) -> Fraction:
    """The lower bound that feasible duals prove; raises ValueError if they do not fit the rule."""
    y, slopes = ExactNumbers.of(labels), ExactNumbers.of(beta)
    rise = ExactNumbers(y.numerators * slopes.numerators, y.unit * slopes.unit)
    value = ExactNumbers.of(alpha).total() + rise.total()
    if rule.kind == "max":
        return value - rule.amount * ExactNumbers(abs(slopes.numerators), slopes.unit).total()
    if rule.kind == "penalty" and rule.amount > 0:
        total = sum(weights)
        if any(b and not w for b, w in zip(slopes.numerators, weights, strict=True)):
            raise ValueError("a label with weight 0 has a slope")
        priced = [b * b * total / w for b, w in zip(slopes, weights, strict=True) if b]
        return value - _sum_of(priced) / (4 * rule.amount)
    if rule.kind != "unbiased" and any(slopes.numerators):
        raise ValueError("a bound over all randomizers has no slopes")
    return value


def _sum_of(terms: Sequence[Fraction]) -> Fraction:
    """At least the sum of fractions ≥ 0 whose denominators have little in common, halves first.

    One after the other would multiply a long number by a short one each time. A sum that is longer
    than a certificate could state is rounded up to a multiple of 2^-1000, which lowers the bound.
    """
    if len(terms) < 2:
        return sum(terms, Fraction(0))
    middle = len(terms) // 2
    total = _sum_of(terms[:middle]) + _sum_of(terms[middle:])
    if total.denominator.bit_length() > _MOST_BITS:
        return Fraction(-(-total * 2**_ROUNDED_BITS // 1), 2**_ROUNDED_BITS)
    return total


def require_weights(weights: Sequence[int], exp_upper: Fraction) -> None:
    """Raise ValueError unless weights are a prior, and ``exp_upper`` a bound of e^ε."""
    if min(weights) < 0 or not any(weights) or exp_upper < 1:
        raise ValueError("weights must be >= 0 and not all 0, and exp_upper at least 1")


class Duals(NamedTuple):
    """Labels y [k], weights [k], dual values α and β [k], and a number that is e^ε − 1 or more."""

    labels: ExactNumbers
    weights: Sequence[int]
    alpha: ExactNumbers
    beta: ExactNumbers
    growth: Fraction


def squared_holds(duals: Duals) -> bool:
    """Whether F ≥ 0 everywhere; False, too, if enclosures are too wide to tell."""
    A, B, C = _on_lattice(duals)  # h_y = A·n² + B·n + C, A ≥ 0
    # Multiply F by the denominator of the growth: everything stays an integer.
    one, extra = duals.growth.denominator, duals.growth.numerator
    a, b, c = one * sum(A), one * sum(B), one * sum(C)
    changes: dict[int, list[int]] = defaultdict(list)  # step → pieces that change their sign
    negative = []
    for y, piece in enumerate(zip(A, B, C, strict=True)):
        for step in root_steps(*piece):
            changes[step].append(y)
        negative.append(piece[0] == 0 and (piece[1] > 0 or (piece[1] == 0 and piece[2] < 0)))
    # Sums over the pieces that are negative, which count e^ε times.
    below = list(compress(range(len(A)), negative))
    na, nb, nc = (sum(side[y] for y in below) for side in (A, B, C))
    position: int | None = None
    for step, turning in sorted(changes.items()):
        now = a + extra * na, b + extra * nb, c + extra * nc
        if not is_nonnegative(*now, position, step):
            return False
        lowest = 0  # of the pieces that change their sign inside the step
        for y in set(turning):
            lowest += min(low_in_step(A[y], B[y], C[y], step), 0)
            if negative[y]:
                na, nb, nc = na - A[y], nb - B[y], nc - C[y]
        now = a + extra * na, b + extra * nb, c + extra * nc
        if low_in_step(*now, step) + extra * lowest < 0:
            return False
        for y in turning:
            negative[y] = not negative[y]
        for y in set(turning):
            if negative[y]:
                na, nb, nc = na + A[y], nb + B[y], nc + C[y]
        position = step + 1
    return is_nonnegative(a + extra * na, b + extra * nb, c + extra * nc, position, None)


def _on_lattice(duals: Duals) -> tuple[list[int], list[int], list[int]]:
    """The h_y as a·n² + b·n + c in n, v = n·δ, all multiplied by one positive number: [k] each.

    Over twice the sum of the weights and a common denominator,
    h_y = w·δ²·n² − 2·(w·y + β·Σw)·δ·n + w·y² − 2·α·Σw.
    """
    y, weights, level, slope, _ = duals
    common = gcd(*weights)
    w = whole([weight // common for weight in weights])
    total = sum(w.tolist())
    delta = Fraction(1, 1 << LATTICE_BITS) * (Fraction(1 << _log2_ceil(y[-1] - y[0])))
    top, bottom = delta.numerator, delta.denominator
    unit = lcm(bottom**2, bottom * y.unit, bottom * slope.unit, y.unit**2, level.unit)
    at, square = w * y.numerators, w * (top**2 * unit // bottom**2)
    rise = 2 * total * top * unit // (bottom * slope.unit)
    linear = at * (-2 * top * unit // (bottom * y.unit)) - slope.numerators * rise
    fall = 2 * total * unit // level.unit
    constant = at * y.numerators * (unit // y.unit**2) - level.numerators * fall
    return square.tolist(), linear.tolist(), constant.tolist()


def _log2_ceil(span: Fraction) -> int:
    """A whole number e ≥ 0 with 2^e ≥ span."""
    return max(0, (span.numerator // span.denominator).bit_length())


# ---- Rigorous lower bounds on the absolute and the 0-1 loss, from dual values, without a solver.
#
# Let α [k] be any numbers, h_y(v) = p_y·|v − y| − α_y, and
#
#     F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).
#
# If F ≥ 0 on the whole real line, every ε-DP randomizer M loses at least Σα. Proof, for finitely
# many outputs (limits cover the rest): with m(v) = min_y M(v | y), DP gives m(v) ≤ M(v | y) ≤
# e^ε·m(v), hence M(v | y)·h_y(v) ≥ m(v)·(h_y(v) + (e^ε − 1)·min(h_y(v), 0)). This uses the lower
# bound where h_y is positive, and the upper one where it is negative. Summed over y, Σ_y M(v |
# y)·h_y(v) ≥ m(v)·F(v) ≥ 0; summed over v, Σ_v Σ_y M(v | y)·p_y·|v − y| ≥ Σ_y α_y, as Σ_v M(v | y)
# = 1.
#
# The same holds with two slopes, u·(y − v) below the label and o·(v − y) above it: at quantile q
# u is q and o is 1 − q.
#
# F is piecewise linear and does not fall towards either infinity. Its slope rises only at labels:
# where some h_y changes its sign, min(h_y, 0) bends downwards. So its least value is at a label,
# and only labels must be checked. e^ε is replaced by a rational above it, which only makes F
# smaller. All arithmetic is in integers.
#
# The 0-1 loss: with [v ≠ y] in place of |v − y|, the proof is the same. F is constant except at the
# labels. If F ≥ 0 at every label and at one value that is not a label, every ε-DP randomizer
# changes a label with a probability of at least Σα.


_INT64_BITS = 62
_UNIT = Fraction(1)


def sided_holds(duals: Duals, under: Fraction = _UNIT, over: Fraction = _UNIT) -> bool:
    """Whether F ≥ 0 everywhere, decided exactly; there are no slopes.

    ℓ is ``under`` for each unit that v is below the label, and ``over`` for each unit above it.
    """
    labels, weights, level, _, growth = duals
    unit, scale = lcm(labels.unit, level.unit), lcm(under.denominator, over.denominator)
    sides = int(under * scale), int(over * scale)
    heights = level.over(unit) * (sum(weights) * scale)  # times these all are integers
    return _lines_hold(labels.over(unit), whole(weights), heights, growth, sides)


def _lines_hold(
    y: Whole, w: Whole, a: Whole, growth: Fraction, sides: tuple[int, int] = (1, 1)
) -> bool:
    """Whether F ≥ 0 on the whole real line, in O(k log k).

    h_j is w_j·u·(y_j − v) − a_j below its label, and w_j·o·(v − y_j) − a_j above it, for ``sides``
    u and o > 0. ``y`` [k] increasing, ``w`` [k] ≥ 0 and not all 0, ``growth`` is e^ε − 1 or more.
    """
    # Σ min(h_j, 0): on each side of its label h_j is a line, negative up to some label; constants
    # and slopes add up over ranges of labels, which begin and end at those noted here.
    under, over = sides
    low = np.flatnonzero(a > 0)
    at, weight, height = y[low], w[low], a[low]
    left, right = (
        np.where(weight == 0, y[-1] - y[0], height // np.maximum(weight * side, 1))
        for side in sides
    )
    first = np.searchsorted(short(y), short(at - left))
    behind = np.searchsorted(short(y), short(at + right), side="right")
    both = (under + over) * weight
    both, moment, height = map(short, (both, both * at, height))
    kind = np.result_type(both, moment, height)
    level, slope = np.zeros((2, len(y) + 1), dtype=kind)
    falls, rises = ((weight * side).astype(kind) for side in sides)
    before, after = ((weight * side * at).astype(kind) for side in sides)
    for places, constant, rise in (
        (first, before - height, -falls),
        (low, -moment, both),
        (behind, after + height, -rises),
    ):
        np.add.at(level, places, constant)
        np.add.at(slope, places, rise)
    inner = np.cumsum(level)[:-1] + np.cumsum(slope)[:-1] * y
    mass, moments = (np.cumsum(short(term)).astype(object) for term in (w, w * y))
    outer = ((under + over) * mass - under * mass[-1]) * y - (under + over) * moments
    outer = outer + (under * moments[-1] - a.sum())
    return bool(np.all(growth.denominator * outer + growth.numerator * inner >= 0))


def zero_one_holds(duals: Duals) -> bool:
    """Whether F ≥ 0 everywhere, decided exactly in O(k), for h_j = w_j·[v ≠ y_j] − a_j."""
    _, weights, level, _, growth = duals

    def term(h: int) -> int:
        return growth.denominator * h + growth.numerator * min(h, 0)

    total = sum(weights)
    heights = (level.numerators * total).tolist()
    pairs = list(zip([weight * level.unit for weight in weights], heights, strict=True))
    nowhere = sum(term(weight - level) for weight, level in pairs)
    return nowhere >= 0 and all(nowhere - term(w - a) + term(-a) >= 0 for w, a in pairs)


def short(numbers: Whole) -> NDArray[Any]:
    """As int64 where even four times their sum fits."""
    bits = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0))).bit_length()
    fits = bits + len(numbers).bit_length() + 2 <= _INT64_BITS
    return numbers.astype(np.int64) if fits else numbers


# ---- A rigorous lower bound on the loss of very many labels, from few numbers.
#
# One dual value per label would take more space than the tables of a file. Instead, a label has a
# radius r_y ≥ 0, and α_y = p_y·g(r_y) with the loss g(r) of an output that is r below its label:
# ½r², or u·r with two slopes. So
#
#     h_y(v) = p_y·(ℓ(v, y) − g(r_y)) < 0 exactly where v is less than r_y below the label, or less
#     than r_y (squared) or r_y·u/o (two slopes) above it,
#     F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).
#
# If F ≥ 0 on the whole real line, every ε-DP randomizer loses at least Σα: that holds for any α
# (as proved above). The radii are stated at a few labels,
# as integer multiples of a unit. Between two of these labels they follow a line, rounded down to
# the unit.
#
# F grows without limit on both sides, and bends downwards where a sign changes. So its least value
# is where its slope passes zero inside a piece (squared), or at a label (two slopes).
# e^ε is replaced by a rational above it, which only makes F smaller. All arithmetic is in integers.


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


def squared_radii(y: Whole, w: Whole, r: Whole, unit: int, growth: Fraction) -> Fraction | None:
    """Σ w·½r² in the labels' own units if F ≥ 0 everywhere, decided exactly; else None."""
    return Fraction(int((w * r * r).sum()), 2 * unit**2) if _radii_hold(y, w, r, growth) else None


def sided_radii(
    y: Whole,
    w: Whole,
    r: Whole,
    unit: int,
    growth: Fraction,
    under: Fraction = _UNIT,
    over: Fraction = _UNIT,
) -> Fraction | None:
    """Σ w·under·r in the labels' own units if F ≥ 0 everywhere, decided exactly; else None."""
    scale = lcm(under.denominator, over.denominator)
    sides = int(under * scale), int(over * scale)
    heights = w * r * sides[0]
    holds = _lines_hold(y, w, heights, growth, sides)
    return Fraction(int(heights.sum()), unit * scale) if holds else None


def _radii_hold(y: Whole, w: Whole, r: Whole, growth: Fraction) -> bool:
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
