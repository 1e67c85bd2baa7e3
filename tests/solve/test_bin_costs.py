"""Bin costs and moments of runs against their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from labeldp_compile.solve.losses import RangeMoments, bin_costs, poisson_divergence
from tests.solve.bins_reference import LOSSES, problems, repeatable, squared


@settings(repeatable, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-6, 1e-12]))
def test_moments_of_runs_do_not_cancel(size, seed, closeness):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(size) < 0.5, 1.0, 2.0) + closeness * np.arange(size)
    weights = 10.0 ** rng.uniform(-8, 0, size)
    moments = RangeMoments(labels, weights, squared)
    first, stop = np.triu_indices(size)
    stop = stop + 1
    left, right = moments.halves(first, stop)
    mass = left.mass + right.mass
    mean = (left.mass * left.mean + right.mass * right.mean) / mass
    spread = left.spread + right.spread
    spread += left.mass * squared(left.mean, mean) + right.mass * squared(right.mean, mean)
    inside = (np.arange(size) >= first[:, None]) & (np.arange(size) < stop[:, None])
    w = weights * inside
    centre = (w @ labels) / w.sum(axis=1)
    expected = (w * squared(labels, centre[:, None])).sum(axis=1)
    np.testing.assert_allclose(mass, w.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(mean, centre, rtol=1e-13)
    # Neighbours differ by `closeness`, and a mean has an error of 1e-16 or so.
    tolerance = 1e-12 + 1e-14 / closeness
    np.testing.assert_allclose(spread / mass, expected / mass, rtol=tolerance, atol=1e-30 * size**2)


def exact_cost(prior, inside, epsilon, labels, loss):
    """Cost of one bin from zero and the best output, in 50 digits."""
    with mp.workdps(50):
        b = mp.exp(-mp.mpf(epsilon))
        total = mp.fsum(map(mp.mpf, prior))
        weights = [mp.mpf(p) / total * (1 if i else b) for p, i in zip(prior, inside, strict=True)]
        y = [mp.mpf(label) for label in labels]

        def cost(v):
            terms = {
                "squared": lambda y: (v - y) ** 2 / 2,
                "absolute": lambda y: abs(v - y),
                "poisson": lambda y: v - y + (y * mp.log(y / v) if y else 0),
            }
            return mp.fdot(weights, map(terms[loss], y))

        mean = mp.fdot(weights, y) / mp.fsum(weights)
        best = min(y, key=cost) if loss == "absolute" else mean
        return cost(best), best


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 3.0, 15.0, 28.0])
@pytest.mark.parametrize(
    ("labels", "prior"),
    [
        ([0.0, 1.0, 2.0, 5.0, 9.0, 9.5, 20.0], [3, 1, 4, 1, 5, 9, 2]),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 60, 1, 1, 1, 1]),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 1, 1, 60, 1]),
        ([0.1, 0.3, 0.7, 1.1, 9.3], [0.1, 1e-12, 1.0, 1e-12, 1e-11]),
        ([100.0, 100.001, 100.002, 100.003], [1, 2, 1, 3]),
        ([1.0, 1.1, 1.2, 7.0, 400.0], [1.0, 1e-3, 1e-6, 1e-9, 1e-12]),
    ],
)
def test_costs_by_definition(labels, prior, epsilon, loss):
    labels, prior = np.array(labels), np.array(prior) / np.sum(prior)
    costs = bin_costs(loss, labels, prior, epsilon)
    first, stop = np.triu_indices(labels.size)
    got = costs.excess(first, stop + 1) + np.exp(-epsilon) * costs.base
    values = costs.values(first, stop + 1)
    for at, (r, i) in enumerate(zip(first, stop, strict=True)):
        inside = [r <= j <= i for j in range(labels.size)]
        cost, value = exact_cost(prior, inside, epsilon, labels, loss)
        assert got[at] * costs.unit == pytest.approx(float(cost), rel=1e-9, abs=0)
        assert values[at] == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=40)
@given(problem=problems(most=8))
def test_costs_rise_with_the_bin(loss, problem):
    labels, prior, epsilon = problem
    labels, prior = labels[prior > 0], prior[prior > 0] / prior.sum()
    costs = bin_costs(loss, labels, prior, epsilon)
    first, stop = np.triu_indices(labels.size)
    excess = np.full((labels.size, labels.size + 1), np.nan)
    excess[first, stop + 1] = costs.excess(first, stop + 1)
    assert (excess[first, stop + 1] >= 0).all()
    slack = 1e-12 * excess[0, -1] + 1e-28
    for r, i in combinations(range(labels.size + 1), 2):
        assert i == labels.size or excess[r, i] <= excess[r, i + 1] + slack
        assert r == 0 or excess[r, i] <= excess[r - 1, i] + slack


def test_the_poisson_loss_of_zero_is_its_output_however_large():
    outputs = np.array([1e-300, 1.0, 1e15, 1e16, 1e300])
    np.testing.assert_array_equal(poisson_divergence(np.zeros(5), outputs), outputs)
