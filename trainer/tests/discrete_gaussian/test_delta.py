"""The proof of (ε, δ): bounds of tails, of δ, and of what rounding changes, against other ways."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.noise import (
    LEAST_SIGMA,
    ProvedNoise,
    continuous_delta,
    least_sigma,
    rounding_distance,
    tail_bounds,
)
from scipy.special import ndtr

UNIT = 1 << 24


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(120):
        yield


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def tail(t):
    return mpmath.erfc(t / mpmath.sqrt(2)) / 2


def exact_delta(ratio, epsilon):
    """Balle and Wang 2018, Theorem 8."""
    r, e = real(ratio), real(epsilon)
    return tail(e / r - r / 2) - mpmath.exp(e) * tail(e / r + r / 2)


POINTS = [Fraction(n, 7) for n in range(-70, 280, 3)] + [
    *(Fraction(s, 10**d) for s in (-1, 1) for d in (0, 3, 30)),
    *(5 + Fraction(s, 10**d) for s in (-1, 0, 1) for d in (1, 20, 40)),
    *(Fraction(n) for n in (-100, -41, 0, 41, 70, 99, 100)),
]


def test_tails_lie_between_their_bounds_which_are_tight():
    for t in POINTS:
        low, high = tail_bounds(t)
        assert real(low) <= tail(real(t)) <= real(high), t
        assert real(high - low) <= real(high) * mpmath.mpf(10) ** -25, t


def test_tails_beyond_what_is_resolved():
    low, high = tail_bounds(Fraction(10**6))
    assert low == 0 < high < Fraction(1, 10**2000)
    low, high = tail_bounds(Fraction(-(10**6)))
    assert 1 - Fraction(1, 10**2000) < low < high == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(8)])
def test_delta_of_the_continuous_noise_is_that_of_balle_and_wang(epsilon):
    for ratio in (Fraction(n, d) for n in (1, 3, 17) for d in (1, 4, 100)):
        stated, exact = real(continuous_delta(ratio, epsilon)), exact_delta(ratio, epsilon)
        assert exact <= stated <= exact * (1 + mpmath.mpf(10) ** -20) + mpmath.mpf(10) ** -60


@pytest.mark.parametrize("sigma", [64, 81, 128, 300])
def test_rounding_changes_no_more_than_stated_and_not_much_less(sigma):
    """Total variation of discrete Gaussian and rounded continuous one, on all that has mass."""
    k = np.arange(-12 * sigma, 12 * sigma + 1)
    weights = np.exp(-np.square(k, dtype=np.float64) / (2 * sigma**2))
    size = np.abs(k)  # the upper tail, where differences of ndtr keep their digits
    rounded = ndtr(-(size - 0.5) / sigma) - ndtr(-(size + 0.5) / sigma)
    rounded[len(k) // 2] = math.erf(0.5 / sigma / math.sqrt(2))
    found = np.abs(weights / weights.sum() - rounded).sum() / 2
    stated = float(rounding_distance(sigma, 1))
    assert stated / 10 < found < stated
    assert found > 0.85 * stated  # as the proof says: 1/49.6 of σ⁻², and terms of higher order


def test_the_constant_is_what_the_proof_adds_up():
    """½·(∫|f″| + TV(f″))/24 for σ = 1; the second part falls with σ, the first does not."""
    f = mpmath.npdf
    integral = 4 * f(1)
    variation = 2 * (f(0) + 2 * f(mpmath.sqrt(3))) + 4 * f(mpmath.sqrt(3))
    found = (integral + variation / LEAST_SIGMA) / 48
    poisson = 2 * mpmath.exp(-2 * mpmath.pi**2 * LEAST_SIGMA**2) * LEAST_SIGMA**2
    assert found + poisson < mpmath.mpf(1) / 45 < found * 1.1


@pytest.mark.parametrize(
    ("squared", "epsilon", "stated", "coordinates"),
    [
        (2 * UNIT**2, "0.1", "1e-5", 1410),
        (2 * UNIT**2, "0.5", "1e-5", 4010),
        (4 * UNIT**2 << 24, "12", "1e-9", 200),
        (3, "0.001", "1e-3", 2),
        (2 * UNIT**2, "1", "1e-12", 10),
    ],
)
def test_the_scale_is_the_least(squared, epsilon, stated, coordinates):
    epsilon, stated = Fraction(epsilon), Fraction(stated)
    sigma = least_sigma(squared, epsilon, stated, coordinates)
    assert ProvedNoise(squared, sigma, coordinates).proved_delta(epsilon) <= stated
    less = math.floor(sigma * (1 - 1e-5)) if sigma > 10**6 else sigma - 1
    assert ProvedNoise(squared, less, coordinates).proved_delta(epsilon) > stated
    # the discrete noise costs nothing that matters: as the continuous one of dimension one
    ratio = mpmath.sqrt(squared) / sigma
    exact = exact_delta(Fraction(str(mpmath.nstr(ratio, 50))), epsilon)
    if squared > UNIT:
        assert real(stated) * mpmath.mpf("0.999") < exact < real(stated)


def test_more_epsilon_never_needs_more_noise():
    """e^ε times what rounding changes would soon be more than δ."""
    found = [
        least_sigma(2 * UNIT**2, Fraction(epsilon), Fraction("1e-5"), 4000)
        for epsilon in (4, 8, 12, 20, 60)
    ]
    assert all(more <= less for less, more in itertools.pairwise(found))
    assert found[-1] < UNIT * 0.6
