"""The dual bound of the absolute loss against brute force in rationals, and corrupted duals."""

from fractions import Fraction
from itertools import pairwise
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import dual_is_feasible


def minimum_of_f(labels, weights, growth, alpha):
    """F at every label, root, middle between them and far away: it is linear in between.

    In whole numbers, of which all are the true ones times the same positive number.
    """
    unit = 2 * lcm(*(x.denominator for x in (*labels, *alpha)), *filter(None, weights))
    Y, A = [int(y * unit) for y in labels], [int(a * unit) * sum(weights) for a in alpha]
    points = set(Y)
    for y, w, a in zip(Y, weights, A, strict=True):
        if w:
            points |= {y - a // w, y + a // w}  # w divides it
    points = sorted(points)
    points = [points[0] - unit, *points, points[-1] + unit]
    points += [(low + high) // 2 for low, high in pairwise(points)]
    p, q = growth.numerator, growth.denominator
    found = []
    for v in points:
        h = [w * abs(v - y) - a for y, w, a in zip(Y, weights, A, strict=True)]
        found.append(q * sum(h) + (p - q) * sum(min(x, 0) for x in h))
    return min(found)


rationals = st.fractions(-3, 3, max_denominator=12)


@st.composite
def duals(draw):
    k = draw(st.integers(1, 6))
    steps = draw(st.lists(st.fractions("1/8", 4, max_denominator=8), min_size=k, max_size=k))
    labels = [sum(steps[: i + 1], Fraction(-3)) for i in range(k)]
    weights = draw(st.lists(st.integers(0, 7), min_size=k, max_size=k).filter(any))
    alpha = draw(st.lists(rationals, min_size=k, max_size=k))
    return labels, weights, draw(st.fractions(1, 60, max_denominator=9)), alpha


@settings(deadline=None, derandomize=True, max_examples=120)
@given(duals())
def test_equals_brute_force(dual):
    labels, weights, growth, alpha = dual
    lowest = minimum_of_f(labels, weights, growth, alpha)
    assert dual_is_feasible(labels, weights, growth, alpha, loss="absolute") == (lowest >= 0)


def test_known_edge():
    # Two equal labels at 0 and 1, e^ε = 3: randomized response loses 1/4, with α = 1/8 each.
    labels, weights, growth = [Fraction(0), Fraction(1)], [1, 1], Fraction(3)
    best = [Fraction(1, 8)] * 2
    assert dual_is_feasible(labels, weights, growth, best, loss="absolute")
    tiny = Fraction(1, 10**40)
    assert not dual_is_feasible(labels, weights, growth, [best[0] + tiny, best[1]], loss="absolute")
    assert not dual_is_feasible(labels, weights, growth + tiny, best, loss="absolute")


def test_what_is_no_problem_is_refused():
    labels, alpha = [Fraction(0), Fraction(1)], [Fraction(0)] * 2
    for weights, growth in (
        ([0, 0], Fraction(2)),
        ([1, -1], Fraction(2)),
        ([1, 1], Fraction(1, 2)),
    ):
        with pytest.raises(ValueError, match="weights must be"):
            dual_is_feasible(labels, weights, growth, alpha, loss="absolute")
    with pytest.raises(ValueError, match="one weight and one dual value"):
        dual_is_feasible(labels, [1, 1], Fraction(2), alpha[:1], loss="absolute")
