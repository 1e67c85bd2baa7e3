"""Duals of RR-on-Bins: as large as its loss, proved by the verifiers, refused once corrupted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import dual_is_feasible
from labeldp_verify.forms.exact_numbers import exp_bounds

from labeldp_compile.solve import rr_on_bins
from labeldp_compile.solve.losses import LOSSES as RECORDS
from labeldp_compile.solve.rr_on_bins import dual_of_rr_on_bins, piece_minima, solve_rr_on_bins

LOSSES = ("squared", "absolute")
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


def counts(kind, k):
    """Whole weights of labels 0 … k − 1."""
    generator = np.random.default_rng(k)
    j = np.arange(k)
    return {
        "uniform": np.ones(k, np.int64),
        "geometric": np.maximum(10**9 * 0.9**j, 1).astype(np.int64),
        "spikes": np.where(j == 0, 5 * k, np.where(j == k - 1, 3 * k, 3)),
        "sparse": np.floor(10**6 * generator.dirichlet(np.full(k, 0.1))).astype(np.int64),
        "claims": np.where(j == 0, 95000, 5000 * 0.6**j).astype(np.int64),
        "even": np.where(j % 2 == 0, 3, 0),
    }[kind]


KINDS = ("uniform", "geometric", "spikes", "sparse", "claims", "even")


def solve(labels, weights, epsilon, loss):
    labels, prior = np.asarray(labels, np.float64), np.asarray(weights) / np.sum(weights)
    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
    return solution.loss, dual_of_rr_on_bins(labels, prior, epsilon, loss, solution)


def is_proved(labels, weights, epsilon, loss, alpha):
    y = [Fraction(float(x)) for x in labels]
    upper = exp_bounds(Fraction(epsilon))[1]
    exact = [Fraction(float(a)) for a in alpha]
    whole = [int(w) for w in weights]
    if loss == "absolute":
        return dual_is_feasible(y, whole, upper, exact, loss="absolute")
    return dual_is_feasible(y, whole, upper, exact, [Fraction(0)] * len(y))


def lowered(alpha, weights, loss_value, relative):
    """Lower the whole bound by ``relative``, spread over the labels with weight."""
    held = np.asarray(weights) > 0
    return alpha - held * (relative * loss_value / held.sum())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_tight_and_proved(kind, epsilon, loss):
    weights = counts(kind, 53)
    labels = np.arange(53)
    value, alpha = solve(labels, weights, epsilon, loss)
    assert value * (1 - 1e-10) <= alpha.sum() <= value * (1 + 1e-13)
    assert (alpha[weights == 0] == 0).all()
    assert is_proved(labels, weights, epsilon, loss, lowered(alpha, weights, value, 1e-12))
    # Anything that would prove more than the optimum is refused, however it is spread.
    more = value * 1e-9
    place = int(weights.argmax())
    for changed in (alpha + more / 53, alpha + more * (np.arange(53) == place)):
        assert not is_proved(labels, weights, epsilon, loss, changed)


@pytest.mark.parametrize(
    ("k", "epsilon", "loss"),
    [(60, 8.0, "squared"), (100, 4.0, "absolute"), (200, 12.0, "squared"), (300, 8.0, "absolute")],
)
def test_linear_programs_close_the_gap_that_projections_leave(limit, k, epsilon, loss):
    weights = counts("uniform", k)
    value, alpha = solve(np.arange(k), weights, epsilon, loss)
    assert alpha.sum() >= value * (1 - 1e-10)
    assert is_proved(np.arange(k), weights, epsilon, loss, lowered(alpha, weights, value, 1e-12))
    limit(rr_on_bins, "_MOST_LABELS", 0)
    value, alpha = solve(np.arange(k), weights, epsilon, loss)
    assert 0.9 * value < alpha.sum() < value * (1 - 1e-6)
    assert is_proved(np.arange(k), weights, epsilon, loss, lowered(alpha, weights, value, 1e-12))


@pytest.mark.parametrize("loss", LOSSES)
@settings(deadline=None, derandomize=True, max_examples=100)
@given(data=st.data())
def test_random_problems(loss, data):
    k = data.draw(st.integers(1, 12))
    steps = data.draw(st.lists(st.integers(1, 40), min_size=k, max_size=k))
    weights = data.draw(st.lists(st.integers(0, 50), min_size=k, max_size=k).filter(any))
    epsilon = data.draw(st.sampled_from([0.0, 0.01, *EPSILONS, 12.0]))
    labels = np.cumsum(steps) / 8 - 20
    value, alpha = solve(labels, weights, epsilon, loss)
    scale = float(np.ptp(labels)) ** (2 if loss == "squared" else 1)
    assert value * (1 - 1e-9) - 1e-14 * scale <= alpha.sum() <= value * (1 + 1e-12) + 1e-15 * scale
    shifted = lowered(alpha, weights, 1.0, 1e-12 * value + 1e-14 * scale)
    assert is_proved(labels, weights, epsilon, loss, shifted)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [20.0, 150.0, 800.0])
def test_large_epsilon_is_safe(loss, epsilon):
    weights = counts("geometric", 20)
    value, alpha = solve(np.arange(20), weights, epsilon, loss)
    assert 0 <= alpha.sum() <= value * (1 + 1e-12)
    if epsilon == 20.0:
        assert alpha.sum() >= value * (1 - 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_labels(loss):
    weights = counts("sparse", 3000)
    value, alpha = solve(np.arange(3000), weights, 1.0, loss)
    assert value * 0.99 <= alpha.sum() <= value * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 7))
def test_pricing_is_the_minimum(loss, seed, k):
    generator = np.random.default_rng(seed)
    labels, prior = np.cumsum(generator.uniform(0.1, 2, k)), generator.dirichlet(np.ones(k))
    alpha = generator.normal(0.3, 1, k) * prior
    minima, places = piece_minima(RECORDS[loss], labels, prior, 1.5, alpha)

    def f(v):
        distance = np.abs(v[:, None] - labels)
        h = prior * (distance**2 / 2 if loss == "squared" else distance) - alpha
        return (h.sum(axis=1) + np.expm1(1.5) * np.minimum(h, 0).sum(axis=1)) * np.exp(-1.5)

    assert f(places) == pytest.approx(minima, abs=1e-12)
    grid = np.linspace(places.min() - 1, places.max() + 1, 2001)
    assert f(grid).min() >= minima.min() - 1e-12
