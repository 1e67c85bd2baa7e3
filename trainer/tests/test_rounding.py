"""What noise on integers costs: bounds of every ratio, and a noise multiplier that keeps ε."""

from fractions import Fraction

import mpmath
import pytest
from labeldp_trainer.dp_gradient.accounting import (
    NoisePlan,
    calibrate,
    calibrate_integers,
    epsilon,
    lattice,
    left_for_steps,
    padded_batch,
)
from labeldp_trainer.dp_gradient.integer_sums import NoiseLattice

mp = mpmath.MPContext()
mp.dps = 60


@pytest.mark.parametrize("scale", [64, 200, 10_007])
def test_ratios_of_rounded_and_discrete_gaussians(scale):
    """Both ends of the ratio, in 60 digits, at zero, in the middle and far out."""
    s = mp.mpf(scale)
    normaliser = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / (2 * s**2)) for k in range(-40 * 200, 40 * 200))
    if scale > 200:
        normaliser = s * mp.sqrt(2 * mp.pi)  # to 10^-30000
    for t in (0, 1, 3, 10, 14):
        k = t * scale
        discrete = mp.exp(-(mp.mpf(k) ** 2) / (2 * s**2)) / normaliser
        ends = [(k + mp.mpf(side) / 2) / s for side in (-1, 1)]
        rounded = mp.ncdf(-ends[0]) - mp.ncdf(-ends[1])
        log = mp.log(rounded / discrete)
        assert -1 / (8 * s**2) <= log <= mp.mpf(t * t) / (24 * s**2) + mp.mpf("1e-40")
    assert log > mp.mpf("0.9") * t * t / (24 * s**2)  # the upper end is near


def test_what_is_left_for_the_steps():
    """By the formula of the theorem, in other arithmetic."""
    scale, numbers, e, d = 1 << 26, 15_210 * 586, Fraction(1), Fraction(1, 10**5)
    left = left_for_steps(scale, numbers, e, d)
    a = mp.mpf(numbers) / (8 * scale**2)
    most = e - left.epsilon
    t = mp.sqrt((mp.mpf(most.numerator) / most.denominator - a) * 24 * scale**2 / numbers)
    tail = 2 * mp.ncdf(-(t - mp.mpf(1) / (2 * scale)))
    delta_left = mp.mpf(left.delta.numerator) / left.delta.denominator
    total = mp.exp(a) * (delta_left + mp.e * numbers * tail)
    total += (1 + mp.e) * numbers * mp.mpf(2) ** -130
    assert total <= mp.mpf("1e-5")
    assert left.delta > Fraction(9998, 10_000) * d
    assert left.epsilon > Fraction(999_999, 1_000_000)


def plan_of(steps, delta):
    return NoisePlan(50_000, 1000, steps, padded_batch(50_000, 1000, steps, delta))


@pytest.mark.parametrize(
    ("target", "delta", "steps", "coordinates"),
    [
        (0.1, 1e-5, 586, 15_210),
        (8.0, 1e-6, 5000, 1_000_000),
        pytest.param(60.0, 1e-5, 586, 15_210, marks=pytest.mark.slow),
        (1.0, 1e-29, 586, 15_210),
    ],
)
def test_exact_noise_is_hardly_more_than_continuous_noise(target, delta, steps, coordinates):
    plan = plan_of(steps, delta)
    sigma, without = (
        calibrate_integers(target, plan, delta, coordinates),
        calibrate(target, plan, delta),
    )
    assert 0.998 * without <= sigma <= 1.002 * without
    left = left_for_steps(
        NoiseLattice(1.0, sigma).sigma, coordinates * steps, Fraction(target), Fraction(delta)
    )
    stated = epsilon(sigma, plan, float(left.delta), interval=lattice(target))
    assert stated <= left.epsilon < target


def test_a_looser_epsilon_never_needs_more_noise():
    plan = plan_of(5000, 1e-6)
    found = [calibrate_integers(e, plan, 1e-6, 1_000_000) for e in (1.0, 4.0, 8.0)]
    assert found == sorted(found, reverse=True)


def test_a_delta_below_what_integers_allow():
    with pytest.raises(
        ValueError, match=r"δ = 1e-40 cannot be reached with noise on integers for 15,"
    ):
        calibrate_integers(1.0, NoisePlan(6000, 600, 100, 700), 1e-40, 15_000)
