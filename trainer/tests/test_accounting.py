import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from labeldp_trainer.dp_gradient.accounting import (
    NoisePlan,
    calibrate,
    epsilon,
    lattice,
    padded_batch,
)
from scipy import stats
from scipy.integrate import trapezoid

STEPS = math.ceil(60_000 / 1024 * 10)


def mnist(batches="secret", max_batch=None):
    most = padded_batch(60_000, 1024, STEPS, 1e-5, 32) if max_batch is None else max_batch
    return NoisePlan(60_000, 1024, STEPS, most, batches)


@pytest.mark.parametrize(
    ("target", "sigma"), [(0.1, 25.42), (0.2, 13.47), (0.5, 5.81), (1.0, 3.084), (2.0, 1.662)]
)
def test_reference_noise_multipliers(target, sigma):
    assert calibrate(target, mnist(), 1e-5) == pytest.approx(sigma, rel=5e-3)


def test_calibrated_noise_suffices_and_hardly_exceeds():
    plan = mnist()
    sigma = calibrate(0.4, plan, 1e-5)
    fine = {"interval": lattice(0.4)}
    assert epsilon(sigma, plan, 1e-5, **fine) <= 0.4
    assert epsilon(sigma * 0.998, plan, 1e-5, **fine) > 0.4


def test_epsilon_is_that_of_the_dominating_pair():
    """One step against the integral of (1 − q)N(0, σ²) + qN(±1, σ²), without dp-accounting."""
    q, sigma = 0.3, 1.5
    x = np.linspace(-15, 15, 200_001)

    def mixture(mean):
        return (1 - q) * stats.norm.pdf(x, 0, sigma) + q * stats.norm.pdf(x, mean, sigma)

    eps = epsilon(sigma, NoisePlan(10, 3, 1, 10), 1e-3)
    delta = trapezoid(np.maximum(mixture(-1) - np.exp(eps) * mixture(1), 0), x)
    assert delta == pytest.approx(1e-3, rel=1e-2)


def truncated_sum(n, q, most, value):
    """Distribution of the noiseless sum: all gradients are +1 but one unit's, which is `value`."""
    weights = {}

    def add(total, p):
        weights[total] = weights.get(total, 0.0) + p

    for others in range(n):
        p = stats.binom.pmf(others, n - 1, q)
        add(min(others, most), p * (1 - q))
        if others < most:
            add(others + value, p * q)
        else:
            add(most - 1 + value, p * q * most / (others + 1))
            add(most, p * q * (1 - most / (others + 1)))
    return weights


@pytest.mark.parametrize(
    ("n", "rate", "most", "sigma", "eps"),
    [(2, 1, 1, 1.0, 3.0), (4, 1, 1, 1.0, 2.0), (6, 2, 2, 2.0, 1.0), (10, 2, 2, 2.0, 0.5)],
)
def test_truncation_is_not_free_and_is_accounted(n, rate, most, sigma, eps):
    """A kept unit displaces another one's gradient, so the exact δ exceeds that without it."""
    x = np.linspace(-12 * sigma - 2, most + 12 * sigma + 2, 40_001)

    def density(value):
        weights = truncated_sum(n, rate / n, most, value)
        return sum(p * stats.norm.pdf(x, total, sigma) for total, p in weights.items())

    one, other = density(-1), density(1)
    exact = max(
        trapezoid(np.maximum(one - np.exp(eps) * other, 0), x),
        trapezoid(np.maximum(other - np.exp(eps) * one, 0), x),
    )
    event = dp_accounting.PoissonSampledDpEvent(rate / n, dp_accounting.GaussianDpEvent(sigma))
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = pld.PLDAccountant(relation, value_discretization_interval=1e-3)
    ignored = accountant.compose(event, 1).get_delta(eps)
    assert exact > 1.2 * ignored
    assert epsilon(sigma, NoisePlan(n, rate, 1, most), exact, interval=1e-3) >= eps


def test_room_for_the_tail_makes_truncation_free():
    assert mnist().max_batch == 1248  # docs/privacy.md, Theorem 7 (c)
    assert mnist().truncation_probability * STEPS <= 1e-8
    everybody = epsilon(8.0, mnist(max_batch=60_000), 1e-5)
    assert epsilon(8.0, mnist(), 1e-5) == pytest.approx(everybody, rel=1e-5)
    assert epsilon(8.0, mnist(max_batch=1024), 1e-5) > 1.3 * everybody


def test_public_batches_against_a_privacy_loss_distribution():
    """The mixture formula against dp-accounting: with probability q a Gaussian of sensitivity 2."""
    sigma, q, steps, delta = 6.0, 0.2, 20, 1e-5
    gaussian = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sensitivity=2.0, value_discretization_interval=1e-3
    )
    nothing = pld.privacy_loss_distribution.identity(1e-3)
    reference = gaussian.compute_mixture(nothing, q).self_compose(steps)
    real = epsilon(sigma, NoisePlan(10, 2, steps, 10, "public"), delta)
    assert real == pytest.approx(reference.get_epsilon_for_delta(delta), rel=1e-3)


def test_partition_is_a_gaussian_of_so_many_epochs():
    plan = NoisePlan(100, 30, 10, 30, "partition")
    assert plan.epochs == 3
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(5.0), 3)
    assert epsilon(5.0, plan, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
