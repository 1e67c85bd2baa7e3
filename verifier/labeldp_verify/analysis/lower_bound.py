"""A rigorous lower bound on the squared noisy label loss, from dual values, without a solver.

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

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm
from typing import Literal


@dataclass(frozen=True)
class BiasRule:
    """Which randomizers a bound speaks of, by their bias d_y = E[M(y)] − y.

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


@dataclass(frozen=True)
class Quadratic:
    """a·n² + b·n + c at lattice points n, with integer coefficients and a ≥ 0."""

    a: int
    b: int
    c: int

    def __add__(self, other: Quadratic) -> Quadratic:
        """Pointwise sum."""
        return Quadratic(self.a + other.a, self.b + other.b, self.c + other.c)

    def times(self, factor: int) -> Quadratic:
        """Pointwise multiple."""
        return Quadratic(self.a * factor, self.b * factor, self.c * factor)

    def at(self, n: int) -> int:
        """The value at lattice point n."""
        return (self.a * n + self.b) * n + self.c

    def low_in_step(self, n: int) -> int:
        """A lower bound on the real interval [n, n + 1]: a convex a·x² sags less than a below."""
        return min(self.at(n), self.at(n + 1)) - self.a

    def is_nonnegative(self, first: int | None, last: int | None) -> bool:
        """Whether it is ≥ 0 on the real interval [first, last]; None means unbounded."""
        if self.a == 0:
            slopes_away = (first is not None or self.b <= 0) and (last is not None or self.b >= 0)
            ends = [self.at(n) >= 0 for n in (first, last) if n is not None]
            return slopes_away and all(ends) and (bool(ends) or self.c >= 0)
        vertex_left = first is not None and -self.b <= 2 * self.a * first
        vertex_right = last is not None and -self.b >= 2 * self.a * last
        if first is not None and vertex_left:
            return self.at(first) >= 0
        if last is not None and vertex_right:
            return self.at(last) >= 0
        return 4 * self.a * self.c >= self.b * self.b

    def root_steps(self) -> list[int]:
        """The lattice steps n whose interval [n, n + 1] holds a change of sign, increasing."""
        if self.a == 0:
            return [] if self.b == 0 else [-self.c // self.b]
        discriminant = self.b * self.b - 4 * self.a * self.c
        if discriminant <= 0:
            return []
        root = isqrt(discriminant)  # √d lies in [root, root + 1)
        low = (-self.b - root - 1) // (2 * self.a)
        high = (-self.b + root) // (2 * self.a)
        # The true roots lie in [low, low + 2) and [high, high + 2): settle by exact signs.
        left_of_vertex = 2 * self.a * (low + 1) + self.b < 0
        low += int(left_of_vertex and self.at(low + 1) > 0)
        high += int(self.at(high + 1) < 0)
        return [low, high]


def bound_value(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    alpha: Sequence[Fraction],
    beta: Sequence[Fraction],
    rule: BiasRule,
) -> Fraction:
    """The lower bound that feasible duals prove; raises ValueError if they do not fit the rule."""
    value = sum(alpha, Fraction(0)) + sum(b * y for b, y in zip(beta, labels, strict=True))
    if rule.kind == "max":
        return value - rule.amount * sum(abs(b) for b in beta)
    if rule.kind == "penalty" and rule.amount > 0:
        total = sum(weights)
        if any(b and not w for b, w in zip(beta, weights, strict=True)):
            raise ValueError("a label without weight has a slope")
        priced = [b * b * total / w for b, w in zip(beta, weights, strict=True) if b]
        return value - _sum_of(priced) / (4 * rule.amount)
    if rule.kind != "unbiased" and any(beta):
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
    beta: Sequence[Fraction],
) -> bool:
    """Whether F ≥ 0 on the whole real line, proved; False if not, or if enclosures are too wide.

    ``labels`` [k] increasing, ``weights`` [k] integers ≥ 0 in proportion to the prior,
    ``exp_upper`` ≥ e^ε, ``alpha`` and ``beta`` [k] exact.
    """
    pieces = _on_lattice(labels, weights, alpha, beta)
    growth = exp_upper - 1
    # Multiply F by the denominator of the growth: everything stays an integer.
    one, extra = growth.denominator, growth.numerator
    current = Quadratic(0, 0, 0)
    changes: dict[int, list[int]] = defaultdict(list)
    negative = []
    for y, piece in enumerate(pieces):
        steps = piece.root_steps()
        for step in steps:
            changes[step].append(y)
        starts_negative = piece.a == 0 and (piece.b > 0 or (piece.b == 0 and piece.c < 0))
        negative.append(starts_negative)
        current = current + piece.times(one + (extra if starts_negative else 0))
    position: int | None = None
    for step in sorted(changes):
        if not current.is_nonnegative(position, step):
            return False
        turning = changes[step]
        for y in set(turning):
            if negative[y]:
                current = current + pieces[y].times(-extra)
        inside = current.low_in_step(step)
        for y in set(turning):
            inside += extra * min(pieces[y].low_in_step(step), 0)
        if inside < 0:
            return False
        for y in turning:
            negative[y] = not negative[y]
        for y in set(turning):
            if negative[y]:
                current = current + pieces[y].times(extra)
        position = step + 1
    return current.is_nonnegative(position, None)


def _on_lattice(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    alpha: Sequence[Fraction],
    beta: Sequence[Fraction],
) -> list[Quadratic]:
    """The h_y as integer quadratics in n, v = n·δ, all multiplied by one positive number."""
    total = sum(weights)
    span = labels[-1] - labels[0]
    delta = Fraction(1, 1 << LATTICE_BITS) * (Fraction(1 << _log2_ceil(span)))
    rational = []
    for y, weight, a, b in zip(labels, weights, alpha, beta, strict=True):
        p = Fraction(weight, total)
        rational.append((p / 2 * delta**2, -(p * y + b) * delta, p * y * y / 2 - a))
    unit = lcm(*(number.denominator for row in rational for number in row))
    return [Quadratic(*(int(number * unit) for number in row)) for row in rational]


def _log2_ceil(span: Fraction) -> int:
    """A whole number e ≥ 0 with 2^e ≥ span."""
    return max(0, (span.numerator // span.denominator).bit_length())
