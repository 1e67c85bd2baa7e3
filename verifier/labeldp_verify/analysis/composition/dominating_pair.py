"""From bounds on hockey-stick divergences to a pair of distributions that dominates all labels.

A curve h that is convex, falls from h(0) = 1 to 0 and lies above (1 − α)⁺ is α ↦ H_α(P‖Q) of some
P and Q (Zhu, Dong and Wang 2022, Proposition 8). If h is piecewise linear, Q has the atom h′(α+) −
h′(α−) at the likelihood ratio α, and P has α times that.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from labeldp_verify.analysis.bounds import exp_upper

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
