"""From bounds on hockey-stick divergences to a pair of distributions that dominates all labels.

A curve h that is convex, falls from h(0) = 1 to 0 and lies above (1 − α)⁺ is α ↦ H_α(P‖Q) of some
P and Q (Zhu, Dong and Wang 2022, Proposition 8). If h is piecewise linear, Q has the atom h′(α+) −
h′(α−) at the likelihood ratio α, and P has α times that.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from labeldp_verify.analysis.composition.lattice import Lattice

Point = tuple[Fraction, Fraction, int]


def dominating_masses(bounds: Sequence[Fraction], lattice: Lattice) -> dict[int, Fraction]:
    """The masses of P by the index of their loss, −N … N; exact, their sum is 1.

    ``bounds`` [N + 1] at the α_j, the last one 0. Both orders of two labels are bounded by them,
    so that H_{1/α} = H_α/α + 1 − 1/α gives as many bounds below 1. The true supremum is convex,
    hence below the lower convex hull of all of them.
    """
    points: list[Point] = [(Fraction(0), Fraction(1), 0)]
    for j in range(lattice.reach, 0, -1):
        alpha = lattice.ratio(j)
        points.append((1 / alpha, bounds[j] / alpha + 1 - 1 / alpha, -j))
    points += [(lattice.ratio(j), bounds[j], j) for j in range(lattice.reach + 1)]
    hull = _lower_hull(points)
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull)]
    slopes.append(Fraction(0))
    return {
        index: alpha * (after - before)
        for (alpha, _, index), (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
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
    return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])
