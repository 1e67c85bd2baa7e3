"""The dual bound: feasible duals are accepted, and every corruption that breaks F ≥ 0 is not."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis.losses import dual_is_feasible
from labeldp_verify.analysis.lower_bound import root_steps
from labeldp_verify.forms.exact_numbers import exp_bounds


def minimum_of_f(labels, weights, epsilon, alpha, beta):
    """F's minimum in float64: at its vertices between all roots, and at the roots."""
    p = np.array(weights) / sum(weights)
    y, a, b = (np.array([float(x) for x in row]) for row in (labels, alpha, beta))

    def f(v):
        h = 0.5 * p * (v - y) ** 2 - a - b * v
        return h.sum() + math.expm1(epsilon) * np.minimum(h, 0).sum()

    points = []
    for pi, yi, ai, bi in zip(p, y, a, b, strict=True):
        points += np.roots([pi / 2, -(pi * yi + bi), pi * yi * yi / 2 - ai]).real.tolist()
    points = sorted({*points, -1e4, 1e4})
    middles = []
    for low, high in pairwise(points):
        grid = np.linspace(low, high, 60)
        middles.append(grid[np.argmin([f(v) for v in grid])])
    return min(f(v) for v in [*points, *middles])


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(1, 6),
    st.integers(0, 2**32),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.booleans(),
)
def test_shifting_to_feasibility_and_back(k, seed, epsilon, with_zeros):
    generator = np.random.default_rng(seed)
    labels = [Fraction(int(x)) for x in np.cumsum(generator.integers(1, 5, k))]
    weights = generator.integers(1, 9, k).tolist()
    beta = [Fraction(round(float(x), 3)) for x in generator.normal(0, 0.3, k)]
    if with_zeros:
        weights[0] = 0 if k > 1 else 1
        beta[0] = Fraction(0) if weights[0] == 0 else beta[0]
    alpha = [Fraction(round(float(x), 3)) for x in generator.normal(0, 1, k)]
    upper = exp_bounds(Fraction(epsilon))[1]
    if weights[0]:
        lowest = minimum_of_f(labels, weights, epsilon, alpha, beta)
        # Moving every α by what F lacks (or has to spare) turns the answer around.
        for amount in (lowest - 1e-3, lowest, lowest + 1e-3, 3 * lowest):
            moved = [a + Fraction(amount) / k for a in alpha]
            found = minimum_of_f(labels, weights, epsilon, moved, beta)
            if abs(found) > 1e-6:
                assert dual_is_feasible(labels, weights, upper, moved, beta) == (found > 0)
    else:
        assert isinstance(dual_is_feasible(labels, weights, upper, alpha, beta), bool)


def test_the_constant_mechanism_bounds_itself():
    # ε → 0: with β = 0 the best is the constant mean, and α_y = its pointwise loss is feasible.
    labels, weights = [Fraction(0), Fraction(1), Fraction(4)], [1, 2, 1]
    mean = Fraction(6, 4)
    alpha = [Fraction(w, 4) * (mean - y) ** 2 / 2 for w, y in zip(weights, labels, strict=True)]
    zero = [Fraction(0)] * 3
    # Exactly tight at a root of all three pieces, it needs room for the enclosures: a hair.
    alpha[0] -= Fraction(1, 10**40)
    assert dual_is_feasible(labels, weights, Fraction(1), alpha, zero)
    for i in range(3):
        raised = [a + Fraction(i == j, 10**39) for j, a in enumerate(alpha)]
        assert not dual_is_feasible(labels, weights, Fraction(1), raised, zero)


def test_labels_without_weight_have_linear_pieces():
    labels, weights = [Fraction(0), Fraction(1)], [0, 1]
    ok = [Fraction(-1), Fraction(0)]
    assert dual_is_feasible(labels, weights, Fraction(3), ok, [Fraction(0), Fraction(0)])
    assert not dual_is_feasible(
        labels, weights, Fraction(3), [Fraction(1), Fraction(0)], [Fraction(0), Fraction(0)]
    )
    # A slope makes h_0 negative on one side, where the other label's parabola may still pay for it.
    assert dual_is_feasible(
        labels, weights, Fraction(2), [Fraction(-1), Fraction(0)], [Fraction(1, 10), Fraction(0)]
    )
    assert not dual_is_feasible(
        labels, weights, Fraction(2), [Fraction(-1), Fraction(0)], [Fraction(10), Fraction(0)]
    )


@pytest.mark.parametrize(
    ("a", "b", "c"), [(1, -3, 2), (7, 1, -900), (1, 0, -2), (3, -(10**9), 5), (1, -2, 1), (1, 0, 1)]
)
def test_root_steps_enclose_the_changes_of_sign(a, b, c):
    steps = root_steps(a, b, c)
    roots = np.roots([a, b, c])
    if b * b - 4 * a * c <= 0:
        assert steps == []
        return
    for step, root in zip(steps, sorted(roots.real), strict=True):
        assert step - 1e-6 * abs(root) <= root <= step + 1 + 1e-6 * abs(root)
    low, high = steps

    def at(n):
        return (a * n + b) * n + c

    assert at(low) >= 0 >= at(low + 1) or low == high
    assert at(high) <= 0 <= at(high + 1) or low == high
