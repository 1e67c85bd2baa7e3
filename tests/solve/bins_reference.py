"""What RR-on-Bins must equal: its definition and brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy.special import kl_div

LOSSES = ("squared", "absolute", "poisson")
repeatable = settings(deadline=None, derandomize=True)


def squared(v, y):
    return 0.5 * (v - y) ** 2


def from_zero(loss, v, y):
    """The loss less its value at v = y, which no mechanism can avoid."""
    if loss == "poisson":
        return kl_div(y, v)
    return squared(v, y) if loss == "squared" else np.abs(v - y)


def unavoidable(loss, labels, prior):
    if loss != "poisson":
        return 0.0
    positive = labels > 0
    y = labels[positive]
    return float(prior[positive] @ (y - y * np.log(y)) / prior.sum())


def loss_of(starts, values, labels, prior, epsilon, loss):
    """Loss from zero of the mechanism, term by term from its definition."""
    bins = np.searchsorted(starts, np.arange(labels.size), side="right") - 1
    chance = np.where(bins[:, None] == np.arange(values.size), 1.0, np.exp(-epsilon))
    chance /= 1.0 + (values.size - 1) * np.exp(-epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss_at = from_zero(loss, values[None, :], labels[:, None])
    weight = (prior / prior.sum())[:, None] * chance
    return float((weight * np.where(weight > 0, loss_at, 0.0)).sum())


def best_output(weights, labels, loss):
    if loss in ("squared", "poisson"):
        return weights @ labels / weights.sum()
    return min(labels, key=lambda v: weights @ np.abs(v - labels))


def by_brute_force(labels, prior, epsilon, loss):
    """Least loss from zero over every partition into intervals."""
    losses = []
    for count in range(labels.size):
        for inner in combinations(range(1, labels.size), count):
            starts = np.array([0, *inner])
            inside = np.searchsorted(starts, np.arange(labels.size), side="right") - 1
            weights = prior * np.where(inside == np.arange(count + 1)[:, None], 1, np.exp(-epsilon))
            values = np.array([best_output(w, labels, loss) for w in weights])
            losses.append(loss_of(starts, values, labels, prior, epsilon, loss))
    return min(losses)


def check_solution(solution, labels, prior, epsilon, loss):
    assert solution.starts[0] == 0
    assert (np.diff(solution.starts) > 0).all()
    assert solution.starts[-1] < labels.size
    assert solution.values.shape == solution.starts.shape
    assert (np.diff(solution.values) > 0).all()
    assert labels[0] <= solution.values[0]
    assert solution.values[-1] <= labels[-1]
    honest = loss_of(solution.starts, solution.values, labels, prior, epsilon, loss)
    apart = unavoidable(loss, labels, prior)
    assert solution.loss == pytest.approx(honest + apart, rel=1e-9, abs=1e-12 * abs(apart))
    return honest


def priors(size):
    even = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    uneven = st.lists(st.floats(-9, 0).map(lambda t: 10.0**t), min_size=size, max_size=size)
    return st.one_of(even, uneven).filter(any).map(lambda p: np.array(p, dtype=float))


@st.composite
def problems(draw, most=7, epsilons=(0.01, 30.0)):
    steps = draw(st.lists(st.integers(1, 40), min_size=1, max_size=most))
    scale = draw(st.sampled_from([1.0, 0.1, 1e5]))
    labels = (np.cumsum(steps) - draw(st.sampled_from([1, steps[0]]))) * scale
    return labels, draw(priors(labels.size)), draw(st.floats(*epsilons))
