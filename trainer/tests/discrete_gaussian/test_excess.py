"""How likely outcomes are that say more than ε allows: Theorem 20 against exact numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, excess, excess_bound
from labeldp_trainer.dp_gradient.accounting import NoisePlan, calibrate_integers, excess_of_steps
from labeldp_trainer.staged_release.plan import BudgetPlan
from scipy import stats

STATED = [("1", "1e-6", 20), ("0.1", "1e-5", 111), ("8", "1e-6", 4), ("0.5", "1e-12", 86)]


@pytest.mark.parametrize(("epsilon", "delta", "times"), STATED)
def test_a_gaussian_exceeds_epsilon_far_more_often_than_delta(epsilon, delta, times):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    noise = ProvedNoise.least(2 << 48, 100, epsilon, delta)
    bound, exact = noise.excess(epsilon)
    ratio = math.sqrt(noise.squared_sensitivity) / noise.sigma
    tail = stats.norm.sf(float(epsilon) / ratio - ratio / 2)
    assert float(exact) == pytest.approx(tail, rel=1e-6) and exact >= Fraction(tail) * (1 - 10**-9)
    assert times <= exact / delta < times + 1
    assert exact < bound < 3 * exact
    in_stages = BudgetPlan.of(epsilon, delta, classes=True).excess(epsilon, delta)
    assert float(in_stages) == pytest.approx(float(bound), rel=0.06)  # of the whole budget


def test_the_bound_holds_for_random_mechanisms():
    """From the definition: two distributions on a few outcomes, all thresholds."""
    draw = np.random.default_rng(0)
    for _ in range(20):
        first, second = draw.dirichlet([0.5] * 6, 2)
        losses = np.log(first / second)

        def profile(epsilon, p=first, q=second):
            return Fraction(float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (1 + 1e-9)))

        for epsilon in map(Fraction, (0.1, 0.5, 1, 3)):
            assert first[losses > epsilon].sum() <= excess(profile, epsilon) <= 1


def test_it_is_attained_from_delta_alone():
    """(ε, δ) allows a loss of ε + ln 2 with probability 2δ: half of it is what e^ε leaves out."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    allowed = excess_bound(epsilon + Fraction(math.log(2)), epsilon, delta)
    assert float(allowed) == pytest.approx(0.002)


@pytest.mark.parametrize("batches", ["secret", "public", "partition"])
def test_private_gradients_have_a_bound_that_is_at_least_the_last_step_s(batches):
    plan = NoisePlan(1000, 100, 10, 200, batches)
    sigma = calibrate_integers(1.0, plan, 1e-5, 10)
    bound = excess_of_steps(sigma, plan, 1.0, 1e-5, 10)
    assert 5e-5 < bound < 1e-3
    if batches == "partition":  # one Gaussian
        tail = stats.norm.sf(sigma / 2 - 1 / sigma)
        assert tail < bound < 3 * tail
