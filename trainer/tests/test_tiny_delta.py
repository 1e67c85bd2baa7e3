"""What is stated at any δ, against the truth in 40 digits."""

import functools

import mpmath
import numpy as np
import pytest
from labeldp_trainer.dp_gradient.accounting import (
    NoisePlan,
    calibrate,
    epsilon,
    lattice,
    padded_batch,
)
from labeldp_trainer.dp_gradient.privacy_loss import ROUNDING, Pair, composed_epsilon
from scipy import special

mp = mpmath.MPContext()
mp.dps = 40
DELTAS = ["1e-2", "1e-13", "1e-40", "1e-300"]


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def pair_delta(q, shift, epsilon):
    """δ(ε) of one step, for any real ε: outcomes above the one whose loss is ε count."""
    q, s, grown = mp.mpf(q), mp.mpf(shift), mp.exp(epsilon)
    if q == 1:
        cut = epsilon / (2 * s)
    else:
        c = q * mp.exp(-s * s / 2) / (1 - q)
        cut = mp.log((grown - 1 + mp.sqrt((grown - 1) ** 2 + 4 * c * c * grown)) / (2 * c)) / s
    mixtures = [(1 - q) * tail(cut) + q * tail(cut - m) for m in (s, -s)]
    return mixtures[0] - grown * mixtures[1]


def composed_delta(q, shift, steps, epsilon):
    """δ(ε) of several steps: the trapezoid rule, which converges exponentially here."""
    if steps == 1:
        return pair_delta(q, shift, epsilon)
    q, s, h = mp.mpf(q), mp.mpf(shift), mp.mpf(1) / 4
    total = mp.mpf(0)
    for i in range(-40, 4 * 24):
        z = i * h
        density = [mp.exp(-((z - m) ** 2) / 2) / mp.sqrt(2 * mp.pi) for m in (0, s, -s)]
        ratio = ((1 - q) * density[0] + q * density[1]) / ((1 - q) * density[0] + q * density[2])
        rest = composed_delta(q, s, steps - 1, epsilon - mp.log(ratio))
        total += h * ((1 - q) * density[0] + q * density[1]) * rest
    return total


def true_epsilon(delta_of, delta):
    """The root of δ(ε), by bisection, from below."""
    low, high = mp.mpf(0), mp.mpf(1)
    if delta_of(low) <= delta:
        return low
    while delta_of(high) > delta:
        low, high = high, 2 * high
    while high - low > mp.mpf("1e-9") * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return low


def gaussian_epsilon(mu, delta):
    return true_epsilon(functools.partial(pair_delta, 1, mp.mpf(mu) / 2), mp.mpf(delta))


@pytest.mark.parametrize("batches", ["secret", "public"])
@pytest.mark.parametrize(
    ("target", "steps", "delta"),
    [(8.0, 1000, "1e-12"), (8.0, 3000, "1e-14"), (8.0, 10_000, "1e-13"), (1.0, 586, "1e-300")],
)
def test_noise_of_full_batches_suffices(target, steps, delta, batches):
    """Float64 convolutions of privacy losses stated ε = 8 where it was 8.07."""
    sigma = calibrate(target, NoisePlan(100, 100, steps, 100, batches), float(delta))
    found = gaussian_epsilon(2 * mp.sqrt(steps) / mp.mpf(sigma), delta)
    assert target * (1 - 3e-4) <= found <= target


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("sigma", "steps"), [(0.3, 1), (100.0, 3000), (1e5, 7)])
def test_full_batches_are_one_gaussian(sigma, steps, delta):
    truth = gaussian_epsilon(2 * mp.sqrt(steps) / mp.mpf(sigma), delta)
    stated = epsilon(sigma, NoisePlan(10, 10, steps, 10), float(delta))
    assert truth <= stated <= truth * (1 + mp.mpf("1e-6"))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("sigma", "steps"), [(2.0, 1), (100.0, 3000), (1500.0, 300_000)])
def test_composition_by_transforms_against_one_gaussian(sigma, steps, delta):
    """Pairs with q = 1 through the lattice, the tilt and the transform."""
    truth = gaussian_epsilon(2 * mp.sqrt(steps) / mp.mpf(sigma), delta)
    stated = composed_epsilon([Pair(1.0, 1 / sigma)], steps, float(delta), lattice(float(truth)))
    assert truth <= stated <= truth * (1 + mp.mpf("5e-4"))


@pytest.mark.parametrize("delta", ["1e-5", "1e-13", "1e-90"])
@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.25, 1.0, 2), (0.5, 2.0, 2)])
def test_poisson_batches_against_integrals(q, sigma, steps, delta):
    stated = composed_epsilon([Pair(q, 1 / sigma)], steps, float(delta), 1e-4)
    wanted = mp.mpf(delta)
    assert composed_delta(q, 1 / sigma, steps, mp.mpf(stated)) <= wanted
    assert composed_delta(q, 1 / sigma, steps, mp.mpf(stated) * (1 - mp.mpf("1e-3"))) > wanted


def test_any_single_step_is_bounded():
    """Random pairs and δ, from next to no noise to next to no signal."""
    random = np.random.default_rng(5)
    for _ in range(30):
        q, sigma = float(random.uniform() ** 4), float(10 ** random.uniform(-0.3, 3))
        delta = float(10 ** random.uniform(-280, -1))
        interval = float(10 ** random.uniform(-3, -1))
        stated = composed_epsilon([Pair(q, 1 / sigma)], 1, delta, interval)
        assert pair_delta(q, 1 / sigma, mp.mpf(stated)) <= delta, (q, sigma, delta)
        if pair_delta(q, 1 / sigma, mp.mpf(0)) > delta:
            nearly = mp.mpf(stated) * (1 - mp.mpf("1e-3")) - interval
            assert pair_delta(q, 1 / sigma, nearly) > delta, (q, sigma, delta)


@pytest.mark.parametrize("batches", ["secret", "public", "partition"])
def test_deltas_below_what_is_resolved_are_refused(batches):
    plan = NoisePlan(100, 10, 5, 10 if batches == "partition" else 100, batches)
    assert epsilon(4.0, plan, 1e-300) > epsilon(4.0, plan, 1e-200) > 0
    for function in (calibrate, epsilon):
        with pytest.raises(ValueError, match="1e-300"):
            function(4.0, plan, 9e-301)


def test_room_for_the_tail_at_tiny_delta():
    plan = NoisePlan(60_000, 1024, 586, padded_batch(60_000, 1024, 586, 1e-13), "secret")
    assert plan.max_batch < 1400
    assert plan.truncation_probability * 586 <= 1e-16


def test_functions_are_as_precise_as_the_proof_asks():
    """Theorem 7 (h) lets exp, expm1, erf, erfcx and Φ be wrong by 2^-40; they are far better."""
    random = np.random.default_rng(3)
    x = np.concatenate([10.0 ** random.uniform(-9, 0, 300), random.uniform(1, 80, 300)])
    checks = [
        (special.erfcx(x), lambda v: mp.exp(v * v) * mp.erfc(v)),
        (special.erf(x), mp.erf),
        (special.ndtr(x), mp.ncdf),
        (np.exp(-x), lambda v: mp.exp(-v)),
        (np.expm1(-x), lambda v: mp.expm1(-v)),
        (np.log1p(-x[:300] / 2), lambda v: mp.log1p(-v / 2)),
    ]
    for found, truth in checks:
        for value, at in zip(found, x, strict=False):
            exact = truth(mp.mpf(float(at)))
            assert abs(mp.mpf(float(value)) / exact - 1) < ROUNDING / 64
