"""A rigorous lower bound on the noisy label loss from dual values; its proof for the squared loss.

Let α, β [k] be any numbers, h_y(v) = ½p_y(v − y)² − α_y − β_y·v, and

    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0).

Let M be an ε-DP randomizer with finitely many outputs (limits cover the rest) and
m(v) = min_y M(v | y). DP gives m(v) ≤ M(v | y) ≤ e^ε·m(v), hence Σ_y M(v | y)·h_y(v) ≥ m(v)·F(v).
So if F ≥ 0 on the whole real line, summing over v gives

    loss of M ≥ Σ_y α_y + Σ_y β_y·E[M(y)],

which is Σα + Σβ·y for every unbiased M, and Σα for every M if β = 0. If |E[M(y)] − y| ≤ τ it is at
least Σα + Σβ·y − τ·Σ|β|; and loss + λ·Σ p·(E[M(y)] − y)² is at least Σα + Σβ·y − Σ β²/(4λp), where
β must be zero wherever p is.

F is quadratic between the roots of the h_y. Here every root is enclosed between neighbours of a
fine dyadic lattice by exact sign tests; between enclosures the minimum of an exact quadratic is
compared with zero, and inside an enclosure each piece is bounded from below on its own. e^ε is
replaced by a rational above it, which only makes F smaller. All arithmetic is in integers.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from math import gcd, isqrt, lcm
from typing import Literal

from labeldp_verify.analysis.absolute_and_zero_one_bounds import absolute_holds, zero_one_holds
from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.forms.exact_numbers import ExactNumbers, whole


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


_MAX_BITS = 60_000  # Python writes, and a certificate holds, fewer than 15,000
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
    """The sum of fractions whose denominators have little in common, halves first.

    One after the other would multiply a long number by a short one each time. Raises ValueError if
    some of them alone already sum to a fraction longer than a certificate could state.
    """
    if len(terms) < 2:
        return sum(terms, Fraction(0))
    middle = len(terms) // 2
    total = _sum_of(terms[:middle]) + _sum_of(terms[middle:])
    if total.denominator.bit_length() > _MAX_BITS:
        raise ValueError("the bound is a fraction of too many digits")
    return total


def dual_is_feasible(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    exp_upper: Fraction,
    alpha: Sequence[Fraction],
    beta: Sequence[Fraction] | None = None,
    loss: Loss = "squared",
) -> bool:
    """Whether F ≥ 0 on the whole real line, proved; False if not, or if enclosures are too wide.

    Args:
        labels: [k] increasing; of the 0-1 loss any numbers.
        weights: [k] integers ≥ 0 in proportion to the prior, not all 0.
        exp_upper: at least e^ε.
        alpha: [k] exact, in units of the loss.
        beta: [k] exact; of the squared loss alone.
        loss: squared, absolute or zero_one; the latter two are decided exactly.

    Raises:
        ValueError: the arguments are not as described.
    """
    require_weights(weights, exp_upper)
    if len({len(labels), len(weights), len(alpha)}) != 1:
        raise ValueError("there must be one weight and one dual value for each label")
    growth, level = exp_upper - 1, ExactNumbers.of(alpha)
    if loss == "squared":
        slopes = ExactNumbers.of(beta or [0] * len(labels))
        return _squared_holds(*_on_lattice(labels, weights, level, slopes), growth)
    total = sum(weights)  # times it and a common denominator all are integers
    if loss == "zero_one":
        heights = (level.numerators * total).tolist()
        return zero_one_holds([weight * level.unit for weight in weights], heights, growth)
    points = ExactNumbers.of(labels)
    unit = lcm(points.unit, level.unit)
    return absolute_holds(points.over(unit), whole(weights), level.over(unit) * total, growth)


def require_weights(weights: Sequence[int], exp_upper: Fraction) -> None:
    """Raise ValueError unless weights are a prior, and ``exp_upper`` a bound of e^ε."""
    if min(weights) < 0 or not any(weights) or exp_upper < 1:
        raise ValueError("weights must be >= 0 and not all 0, and exp_upper at least 1")


def _squared_holds(A: list[int], B: list[int], C: list[int], growth: Fraction) -> bool:
    """Whether F ≥ 0 for h_y = A·n² + B·n + C [k], A ≥ 0."""
    # Multiply F by the denominator of the growth: everything stays an integer.
    one, extra = growth.denominator, growth.numerator
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


def _on_lattice(
    labels: Sequence[Fraction], weights: Sequence[int], level: ExactNumbers, slope: ExactNumbers
) -> tuple[list[int], list[int], list[int]]:
    """The h_y as a·n² + b·n + c in n, v = n·δ, all multiplied by one positive number: [k] each.

    Over twice the sum of the weights and a common denominator,
    h_y = w·δ²·n² − 2·(w·y + β·Σw)·δ·n + w·y² − 2·α·Σw.
    """
    y = ExactNumbers.of(labels)
    common = gcd(*weights)
    w = whole([weight // common for weight in weights])
    total = sum(w.tolist())
    delta = Fraction(1, 1 << LATTICE_BITS) * (Fraction(1 << _log2_ceil(labels[-1] - labels[0])))
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
