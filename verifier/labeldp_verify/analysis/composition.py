"""The ε of many labels of one user together, from the integers alone (Theorem 12)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

from labeldp_verify.forms import AdditiveRandomizer, Randomizer, TableRandomizer, WindowRandomizer
from labeldp_verify.forms.exact_numbers import exp_bounds, exp_upper, least_log_bound

# ---- From bounds on hockey-stick divergences to a pair of distributions that dominates all labels.
#
# A curve h that is convex, falls from h(0) = 1 to 0 and lies above (1 − α)⁺ is α ↦ H_α(P‖Q) of some
# P and Q (Zhu, Dong and Wang 2022, Proposition 8). If h is piecewise linear, Q has the atom h′(α+)
# − h′(α−) at the likelihood ratio α, and P has α times that.


RATIO_BITS = 96
SLACK = Fraction(1, 1 << (RATIO_BITS - 1))
"""ln α_j lies at most this far above j·step."""


class Lattice:
    """The losses j·step, j = 0 … N, and α_j = ratios[j] / 2^96, which is e^(j·step) rounded up.

    N is the least number with α_N ≥ the ratio that the lattice has to reach.
    """

    def __init__(self, step: Fraction, ratio: Fraction) -> None:
        """``step`` > 0 exact, ``ratio`` ≥ 1: the largest likelihood ratio."""
        self.step = step
        self.ratios = _ratios(step, ratio)

    @property
    def reach(self) -> int:
        """N."""
        return len(self.ratios) - 1

    def ratio(self, j: int) -> Fraction:
        """α_j."""
        return Fraction(self.ratios[j], 1 << RATIO_BITS)

    def excesses(self, pairs: Iterable[tuple[int, int]]) -> list[int]:
        """[N + 1] Σ max(p − α_j·q, 0) over pairs of integers p, q ≥ 1, in units of 2^-96."""
        above: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for p, q in pairs:
            # Positive up to the last α_j that is at most p/q.
            sums = above[bisect_right(self.ratios, (p << RATIO_BITS) // q) - 1]
            sums[0] += p
            sums[1] += q
        result, first, second = [0] * len(self.ratios), 0, 0
        for j in reversed(range(len(self.ratios))):
            if j in above:
                first, second = first + above[j][0], second + above[j][1]
            result[j] = (first << RATIO_BITS) - self.ratios[j] * second
        return result


@lru_cache(maxsize=16)  # a certificate is made, checked and drawn with the same lattice
def _ratios(step: Fraction, ratio: Fraction) -> tuple[int, ...]:
    result, least = [1 << RATIO_BITS], ratio * (1 << RATIO_BITS)
    while result[-1] < least:
        power = exp_upper(len(result) * step)
        result.append(-(-(power.numerator << RATIO_BITS) // power.denominator))
    return tuple(result)


Point = tuple[int, int, int, int]
"""x, y, w > 0 and an index: the point (x/w, y/w). Integers need no common divisors."""


def dominating_masses(bounds: Sequence[Fraction], lattice: Lattice) -> dict[int, Fraction]:
    """The masses of P by the index of their loss, −N … N; exact, their sum is 1.

    ``bounds`` [N + 1] at the α_j, the last one 0. Both orders of two labels are bounded by them,
    so that H_{1/α} = H_α/α + 1 − 1/α gives as many bounds below 1. The true supremum is convex,
    hence below the lower convex hull of all of them.
    """
    one = 1 << RATIO_BITS
    points: list[Point] = [(0, 1, 1, 0)]
    for j in range(lattice.reach, 0, -1):
        ratio, (h, d) = lattice.ratios[j], bounds[j].as_integer_ratio()
        points.append((one * d, h * one + (ratio - one) * d, ratio * d, -j))
    for j, ratio in enumerate(lattice.ratios):
        h, d = bounds[j].as_integer_ratio()
        points.append((ratio * d, h * one, one * d, j))
    hull = _lower_hull(points)
    slopes = [
        Fraction(b[1] * a[2] - a[1] * b[2], b[0] * a[2] - a[0] * b[2]) for a, b in pairwise(hull)
    ]
    slopes.append(Fraction(0))
    return {
        index: Fraction(x, w) * (after - before)
        for (x, _, w, index), (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
    }


def _lower_hull(points: Sequence[Point]) -> list[Point]:
    """Andrew's monotone chain; the points come in the order of their first coordinate."""
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_left(a: Point, b: Point, c: Point) -> bool:
    """Whether the determinant of three points, each with its w, is positive."""
    return (
        a[0] * (b[1] * c[2] - c[1] * b[2])
        - a[1] * (b[0] * c[2] - c[0] * b[2])
        + a[2] * (b[0] * c[1] - c[0] * b[1])
    ) > 0


# ---- Hockey-stick divergences between any two labels of a randomizer, from above, in integers.
#
# For all labels y, y′ and α ≥ 1,
#
#     H_α(y‖y′) = Σ_i (P(i|y) − α·P(i|y′))⁺ ≤ Σ_i (P(i|y) − α·least(i))⁺,
#
# where least(i) is at most Pr[i | any label]. It is an equality if some y′ has the least
# probability of all outputs that count. No two labels are more than Randomized Response apart,
# either: H_α ≤ (r − α)/(r + 1) for the largest ratio r (Kairouz, Oh and Viswanath 2015).


# The same for additive noise, in O(D + J) for all α_j: Theorem 12 (d) in docs/privacy.md.
#
# Let y < y′. An output of y that is not folded comes from a noise n, and y′ needs one of n − D …
# n for it. Where the noise rises towards zero the least likely of those is n − D, one block
# further out; from zero on it is n itself, which counts for nothing as α ≥ 1. What rounding adds
# to that is added here, so that nothing is assumed but that the two shapes are monotone. The
# tail below (1 − J)·D, where outputs are folded, is a likelihood ratio of at most ρ as a whole.
# The other direction is the mirror image.


Shape = Sequence[int]


def additive_divergences(r: AdditiveRandomizer, lattice: Lattice) -> list[Fraction] | None:
    """[N + 1] upper bounds of sup H_α(y‖y′) at α_j; None if a shape is not monotone."""
    below, above = r.shapes
    rises = all(a <= b for a, b in pairwise(below))
    falls = all(a >= b for a, b in pairwise(above))
    if not (rises and falls):
        return None
    upwards = _one_way(r.words, r.blocks, below, above, lattice)
    downwards = _one_way(r.words, r.blocks[::-1], above[::-1], below[::-1], lattice)
    return [min(max(pair), Fraction(1)) for pair in zip(upwards, downwards, strict=True)]


def _one_way(
    words: int, blocks: Sequence[int], below: Shape, above: Shape, lattice: Lattice
) -> list[Fraction]:
    """The bounds for y < y′; ``below`` does not fall, and ``above`` does not rise."""
    zero, period = len(blocks) // 2, len(below)
    left, right = blocks[1:zero], blocks[zero:-1]  # −J … −1, and 0 … J − 1
    further = [(b, a) for a, b in pairwise(left)]
    across = [(right[0] * p, left[-1] * q) for p, q in zip(above, below, strict=True)]
    rising = lattice.excesses(further)
    around = lattice.excesses(across)
    # Rounding: block b may start below the end of the block before it, which no density would.
    dips = period * sum(max(a * below[-1] - b * below[0], 0) for a, b in pairwise(left))
    bumps = period * sum(max(b * above[0] - a * above[-1], 0) for a, b in pairwise(right))
    tail = blocks[0] + blocks[1]
    largest = max(lattice.ratio(-1), Fraction(tail, blocks[0]))
    bounds = []
    for j, ratio in enumerate(lattice.ratios):
        folded = max(1 - Fraction(ratio, 1 << RATIO_BITS) / largest, Fraction(0)) * tail * words
        counted = rising[j] * words + around[j] + ratio * dips + (bumps << RATIO_BITS)
        bounds.append((folded + Fraction(counted, 1 << RATIO_BITS)) / words**2)
    return bounds


MAX_WORK = 1 << 21
"""Steps after which Randomized Response is taken instead of the table."""

Pairs = tuple[tuple[int, int], ...]


def divergences(tables: Sequence[Randomizer], lattice: Lattice) -> tuple[list[Fraction], bool]:
    """[N + 1] upper bounds of sup H_α(y‖y′) at the α_j of a lattice that reaches the ratio.

    They hold for any of the tables. The flag is true if they are the tables' own, and false if
    Randomized Response stands in for tables that are too large to look at. The last bound is 0:
    α_N is at least the ratio.
    """
    top = lattice.ratio(-1)
    bounds = [(top - lattice.ratio(j)) / (1 + top) for j in range(lattice.reach + 1)]
    worst = [Fraction(0)] * len(bounds)
    for randomizer in tables:
        own = _own(randomizer, lattice, MAX_WORK // len(tables))
        if own is None:
            return bounds, False
        worst = list(map(max, worst, own))
    return list(map(min, bounds, worst)), True


def _own(randomizer: Randomizer, lattice: Lattice, most: int) -> list[Fraction] | None:
    """The bounds of one table; None if they take more than ``most`` steps."""
    if isinstance(randomizer, AdditiveRandomizer):
        return additive_divergences(randomizer, lattice)
    if isinstance(randomizer, TableRandomizer):
        rows = _table_rows(randomizer)
    else:
        rows = _window_rows(randomizer)
    worst, work, seen = [0] * (lattice.reach + 1), 0, set[Pairs]()
    for pairs, steps in rows:
        work += steps
        if pairs not in seen:
            seen.add(pairs)
            work += lattice.reach
            worst = list(map(max, worst, lattice.excesses(pairs)))
        if work > most:
            return None
    return [Fraction(number, randomizer.words << RATIO_BITS) for number in worst]


def _table_rows(r: TableRandomizer) -> Iterator[tuple[Pairs, int]]:
    """For each label the (count, least count) of the outputs where they differ, and the work."""
    least = [min(column) for column in zip(*r.counts, strict=True)]
    for row in r.counts:
        pairs = ((p, q) for p, q in zip(row, least, strict=True) if p > q)
        yield tuple(sorted(pairs)), len(row)


def _window_rows(r: WindowRandomizer) -> Iterator[tuple[Pairs, int]]:
    """_table_rows of windows: an output's base weight is at most its count under any offset."""
    ends = list(accumulate((segment.length for segment in r.extra), initial=0))
    for start in dict.fromkeys(r.offsets):
        stop = start + r.window
        overlaps: dict[int, int] = defaultdict(int)
        first = j = bisect_right(ends, start) - 1
        while j < len(r.extra) and ends[j] < stop:
            overlaps[r.extra[j].output] += min(ends[j + 1], stop) - max(ends[j], start)
            j += 1
        pairs = ((r.base[i] + overlap, r.base[i]) for i, overlap in overlaps.items() if overlap)
        yield tuple(sorted(pairs)), j - first + 1


# ---- Distributions of privacy losses on a lattice, and their sums, in integers that round upwards.
#
# δ(ε) does not fall if a mass grows or moves to a higher loss, nor does it after any composition.
# So every rounding here goes upwards, and the tails are cut pessimistically: the lower one is moved
# up, and the upper one to infinity.


MASS_BITS = 96
ONE = 1 << MASS_BITS
_TAIL = 1 << (MASS_BITS - 64)


@dataclass(frozen=True)
class Losses:
    """Masses in units of 2^-96: ``masses[i]`` at the loss (first + i)·step, the rest at infinity.

    ``total`` is their sum, at least 1.
    """

    first: int
    masses: list[int]
    infinite: int

    @property
    def total(self) -> int:
        """All masses together."""
        return sum(self.masses) + self.infinite

    def plus(self, other: Losses) -> Losses:
        """The sum of two independent losses: a convolution."""
        finite = sum(self.masses) * sum(other.masses)
        products = _convolved(self.masses, other.masses)
        infinite = _up(self.total * other.total - finite)
        return _cut(Losses(self.first + other.first, [_up(p) for p in products], infinite))

    def times(self, count: int) -> Losses:
        """The sum of ``count`` ≥ 1 independent copies."""
        result, power = None, self
        while True:
            if count & 1:
                result = power if result is None else result.plus(power)
            count >>= 1
            if not count:
                assert result is not None
                return result
            power = power.plus(power)


def from_masses(masses: Mapping[int, Fraction]) -> Losses:
    """The distribution with these masses, rounded up."""
    first, last = min(masses), max(masses)
    integers = [0] * (last - first + 1)
    for index, mass in masses.items():
        integers[index - first] = -(-mass.numerator * ONE // mass.denominator)
    return Losses(first, integers, 0)


def _convolved(one: list[int], other: list[int]) -> list[int]:
    """Exact products of two polynomials, by one product of two long integers (Kronecker)."""
    width = ((sum(one) * sum(other)).bit_length() + 7) // 8
    product = _packed(one, width) * _packed(other, width)
    count = len(one) + len(other) - 1
    data = product.to_bytes(count * width, "little")
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def _packed(masses: list[int], width: int) -> int:
    return int.from_bytes(b"".join(mass.to_bytes(width, "little") for mass in masses), "little")


def _up(product: int) -> int:
    return -(-product >> MASS_BITS)


def _cut(losses: Losses) -> Losses:
    """Without tails of less than 2^-64 each."""
    masses = losses.masses
    low, below = 0, masses[0]
    while below < _TAIL and low < len(masses) - 1:
        low += 1
        below += masses[low]
    high, above = len(masses), 0
    while high - 1 > low and above + masses[high - 1] < _TAIL:
        high -= 1
        above += masses[high]
    kept = [below, *masses[low + 1 : high]]
    return Losses(losses.first + low, kept, losses.infinite + above)


# ---- All labels of one user together: from the parts to δ(ε), which is never below the truth.


MAX_LABELS_PER_USER = 10_000
_FINEST, _COARSEST = 256, 8  # steps of the largest ε of the parts
_WIDTH = 1 << 15  # steps of all labels together
_UNIT = 1 << 160


@dataclass(frozen=True)
class Part:
    """``labels`` labels of one user, each through one of the tables; ``ratio`` bounds their e^ε.

    A file has several tables where groups have their own.
    """

    tables: Sequence[Randomizer]
    ratio: Fraction
    labels: int


@dataclass(frozen=True)
class Composed:
    """The composition of the dominating pairs of all parts.

    ``own_tables`` is false if Randomized Response stood in for one that was too large.
    """

    losses: Losses
    step: Fraction
    labels: int
    own_tables: bool

    def delta(self, epsilon: Fraction) -> Fraction:
        """An upper bound of δ(ε), ε ≥ 0: Σ (P − e^ε·Q)⁺ over all outputs of all labels."""
        # Losses may lie above their lattice points by a hair.
        least = max(epsilon - self.labels * SLACK, Fraction(0))
        start = max(least // self.step + 1, self.losses.first)  # the first loss above ε
        masses = self.losses.masses[start - self.losses.first :]
        kept = _decays(least - start * self.step, self.step, len(masses))
        finite = sum(m * (_UNIT - d) for m, d in zip(masses, kept, strict=True))
        return (Fraction(finite, _UNIT) + self.losses.infinite) / ONE


def compose_parts(parts: Sequence[Part]) -> Composed:
    """The composition of all labels of one user, through any randomizers."""
    step = common_step(parts)
    losses, own = Losses(0, [ONE], 0), True  # the loss 0 for sure
    for part in parts:
        if part.ratio > 1:
            masses, is_own = masses_of(part, step)
            losses = losses.plus(from_masses(masses).times(part.labels))
            own = own and is_own
    return Composed(losses, step, sum(part.labels for part in parts), own)


def masses_of(part: Part, step: Fraction) -> tuple[dict[int, Fraction], bool]:
    """The dominating pair of one label of a part on the lattice, and whether it is its tables'."""
    lattice = Lattice(step, part.ratio)
    bounds, own = divergences(part.tables, lattice)
    return dominating_masses(bounds, lattice), own


def common_step(parts: Sequence[Part]) -> Fraction:
    """The step of the lattice: the largest ε of a part is 8 to 256 steps, exactly."""
    epsilons = [least_log_bound(part.ratio) for part in parts]
    largest = max(epsilons)
    if not largest:
        return Fraction(1)
    total = sum(part.labels * epsilon for part, epsilon in zip(parts, epsilons, strict=True))
    return largest / min(max(int(_WIDTH * largest / total), _COARSEST), _FINEST)


def _decays(exponent: Fraction, step: Fraction, count: int) -> list[int]:
    """[count] lower bounds of e^(exponent − j·step), j ≥ 0, in units of 2^-160; exponent ≤ 0."""
    low = [exp_bounds(x)[0] for x in (exponent, -step)]
    first, factor = (x.numerator * _UNIT // x.denominator for x in low)
    powers = accumulate(range(count - 1), lambda x, _: x * factor // _UNIT, initial=first)
    return list(powers)[:count]
