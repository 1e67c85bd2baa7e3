"""Bin costs and moments of runs against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from labeldp_compile.solve.bin_costs import poisson_divergence
from labeldp_compile.solve.losses import bin_costs
from tests.solve.bins_reference import LOSSES


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


def test_the_poisson_loss_of_zero_is_its_output_however_large():
    outputs = np.array([1e-300, 1.0, 1e15, 1e16, 1e300])
    np.testing.assert_array_equal(poisson_divergence(np.zeros(5), outputs), outputs)
