"""Computes the noise multiplier σ for (ε, δ), when one label is substituted.

The *sum* of clipped gradients gets noise of standard deviation σ·C, and one label moves that sum by
at most 2C (docs/privacy.md, Theorem 7). In a run both are integers (`integer_sums.py`). Every ε
here is an upper bound, rounding included (Theorem 7 h); no library for accounting is used.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

import numpy as np
from labeldp_verify.analysis import exp_upper, log_bounds
from scipy import optimize, special, stats

from labeldp_trainer.config.data import SMALLEST_DELTA
from labeldp_trainer.discrete_gaussian.noise import excess_bound
from labeldp_trainer.discrete_gaussian.sample import DISTANCE
from labeldp_trainer.dp_gradient.integer_sums import NoiseLattice
from labeldp_trainer.dp_gradient.privacy_loss import (
    Pair,
    composed_epsilon,
    gaussian_log_delta,
    least_epsilon,
)

LARGEST_NOISE_MULTIPLIER = 2.0**20
_SMALLEST_NOISE_MULTIPLIER = 2.0**-6
_RELATIVE_TOLERANCE = 1e-4
_BEYOND = 10  # the tails of discrete noise take at most e^−9.5 of δ
_TAIL = Fraction(1, 10_000)
_NORMALISER = Fraction(1, 1 << 1000)  # bounds log(N/I), which is below 10^−30000
_RARE = 1e-10  # the largest share of δ that may be left out

_FACTORS = (Fraction(3, 2), Fraction(2), Fraction(27, 10))

Batches = Literal["secret", "public", "partition"]
"""How batches are drawn, and who may know them.

`secret`: Poisson sampling; nothing is released that depends on who is in a batch, so sampling
amplifies privacy. `public`: Poisson sampling; batches may be known, as denoisers that look at the
batch's features require. `partition`: every unit is in exactly one batch per epoch; batches may be
known.
"""


@dataclass(frozen=True)
class NoisePlan:
    """How often a label takes part. Accounting needs this and σ, nothing else.

    `units` are examples, or users if a user's labels are protected together. `batch` is the
    expected batch size, `max_batch` the padded one. A larger Poisson sample is cut to `max_batch`
    units, chosen uniformly at random.

    Raises ValueError if the numbers do not fit together.
    """

    units: int
    batch: int
    steps: int
    max_batch: int
    batches: Batches = "secret"

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not (1 <= self.batch <= self.max_batch <= self.units and self.steps >= 1):
            raise ValueError(
                f"a plan needs 1 ≤ batch ≤ max_batch ≤ units and at least one step: {self}"
            )
        if self.batches not in get_args(Batches):
            raise ValueError(f"batches must be secret, public or partition; got {self.batches!r}")

    @property
    def rate(self) -> float:
        """The Poisson sampling rate q."""
        return self.batch / self.units

    @property
    def truncation_probability(self) -> float:
        """The probability that a Poisson sample exceeds `max_batch` in one step."""
        if self.batches == "partition":
            return 0.0
        return float(stats.binom.sf(self.max_batch, self.units, self.rate))

    @property
    def epochs(self) -> int:
        """The number of epochs, a started one included: how often a partition uses each unit."""
        return math.ceil(self.steps / self.batches_per_epoch)

    @property
    def batches_per_epoch(self) -> int:
        """How many batches a partition has."""
        return math.ceil(self.units / self.batch)


def padded_batch(units: int, batch: int, steps: int, delta: float, multiple: int = 1) -> int:
    """Return a `max_batch` at which truncation is negligible.

    It is the least one with `steps` · Pr[truncation] ≤ δ/1000, rounded up to a `multiple`. Privacy
    does not depend on this: accounting includes truncation, however frequent it is.
    """
    tail = min(delta / (1000.0 * steps), 0.5)
    low, high = batch - 1, units
    while high - low > 1:
        middle = (low + high) // 2
        rare = stats.binom.sf(middle, units, batch / units) <= tail
        low, high = (low, middle) if rare else (middle, high)
    return min(units, math.ceil(high / multiple) * multiple)


def epsilon(
    noise_multiplier: float, plan: NoisePlan, delta: float, *, interval: float = 1e-4
) -> float:
    """Return ε of `plan` at δ when the noise is σ·C on the sum; infinity if there is none.

    `interval` is the largest spacing of the lattice that privacy losses are rounded to; rounding
    can only raise ε.

    Raises ValueError unless 1e-300 ≤ δ < 1.
    """
    _check_delta(delta)
    if not noise_multiplier > 0:
        return math.inf
    if plan.batches == "secret" and plan.batch < plan.units:
        return composed_epsilon(_pairs(noise_multiplier, plan), plan.steps, delta, interval)
    return _epsilon_of_gaussians(noise_multiplier, plan, delta)


def lattice(target_epsilon: float) -> float:
    """Return an `interval` fine enough for `target_epsilon`: ε is too large by about 0.02%."""
    return min(1e-3, max(1e-6, target_epsilon / 2000))


@functools.cache
def calibrate(target_epsilon: float, plan: NoisePlan, delta: float) -> float:
    """Return the least noise multiplier σ (within 0.01%) with which `plan` is (ε, δ)-label-DP.

    Raises ValueError if ε or δ is out of range, or if no σ up to 2^20 reaches them.
    """
    if not (math.isfinite(target_epsilon) and target_epsilon > 0):
        raise ValueError(f"ε must be positive and finite; it is {target_epsilon}")
    _check_delta(delta)
    interval = lattice(target_epsilon)
    return least_noise(
        lambda sigma: epsilon(sigma, plan, delta, interval=interval),
        target_epsilon,
        f"ε = {target_epsilon:g} at δ = {delta:g}",
    )


def calibrate_integers(
    target_epsilon: float, plan: NoisePlan, delta: float, coordinates: int
) -> float:
    """Return a noise multiplier with which the integers of `NoiseLattice` are (ε, δ)-label-DP.

    `coordinates`: entries of a gradient. Discrete noise takes a small part of ε and δ; σ is
    calibrated for the rest (Theorem 7 i).

    Raises ValueError if ε or δ is out of range or out of reach.
    """
    least = calibrate(target_epsilon, plan, delta) * (1 - 10 * _RELATIVE_TOLERANCE)
    scale, numbers = NoiseLattice(1.0, least).sigma, coordinates * plan.steps
    left = left_for_steps(scale, numbers, Fraction(target_epsilon), Fraction(delta))
    if left is None:
        raise ValueError(
            f"ε = {target_epsilon:g} at δ = {delta:g} cannot be reached with noise on integers for "
            f"{coordinates:,} parameters and {plan.steps:,} steps; raise δ, or use fewer steps or "
            "a smaller model"
        )
    # Rounded down. `left` holds for scales from `least` on, so σ must not be smaller.
    epsilon_left, delta_left = (math.nextafter(float(part), 0.0) for part in left)
    return max(calibrate(epsilon_left, plan, delta_left), least)


def excess_of_steps(
    noise_multiplier: float, plan: NoisePlan, target_epsilon: float, delta: float, coordinates: int
) -> Fraction:
    """An upper bound of Pr[privacy loss > ε] of all steps, with noise on integers.

    Theorem 20 at the ε′ of δ′ = 3δ/2, 2δ and 2.7δ: if δ falls like e^(−s·ε), the best factor is
    (1 + 1/s)^s, between 1 and e.
    """
    scale, numbers = NoiseLattice(1.0, noise_multiplier).sigma, coordinates * plan.steps
    stated, bounds = Fraction(target_epsilon), [Fraction(1)]
    for factor in _FACTORS:
        larger = factor * Fraction(delta)
        left = left_for_steps(scale, numbers, stated, larger)
        if left is None or larger >= 1:
            continue
        delta_left = math.nextafter(float(left.delta), 0.0)
        found = epsilon(noise_multiplier, plan, delta_left, interval=lattice(target_epsilon))
        less = (Fraction(found) if math.isfinite(found) else stated) + stated - left.epsilon
        if less < stated:
            bounds.append(excess_bound(stated, less, larger))
    return min(bounds)


class RoundingCost(NamedTuple):
    """The rest of ε and δ for steps with continuous noise.

    Attributes:
        epsilon: ε₀ < ε.
        delta: δ₀ < δ.
    """

    epsilon: Fraction
    delta: Fraction


def left_for_steps(
    scale: int, numbers: int, epsilon: Fraction, delta: Fraction
) -> RoundingCost | None:
    """Return (ε₀, δ₀): if n numbers of rounded continuous noise give (ε₀, δ₀), then n numbers of
    discrete noise of the same scale s ≥ 64 give (ε, δ). None if that would take 1% of ε or half of
    δ.

    Theorem 7 (i). Let R be N(0, s²) rounded to the nearest integer, and G the discrete Gaussian of
    scale s. G ≤ e^(1/8s²)·R everywhere, and R ≤ e^(t²/24s²)·G up to t scales from zero: so
    replacing n numbers of one by n of the other raises ε by n·(1/8 + t²/24)/s², and δ by very
    little.
    """
    reach = math.ceil(
        2 * (log_bounds(Fraction(numbers))[1] + epsilon + log_bounds(1 / delta)[1] + _BEYOND)
    )  # t²
    square = scale * scale
    if reach > square:
        return None
    below = Fraction(numbers, 8 * square)
    above = numbers * (Fraction(reach, 24 * square) + _NORMALISER)
    sampled = (1 + exp_upper(epsilon)) * numbers * DISTANCE
    left = (delta - sampled) * (1 - below) - _TAIL * delta
    if below + above > epsilon / 100 or left < delta / 2:
        return None
    return RoundingCost(epsilon - below - above, left)


def _check_delta(delta: float) -> None:
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"δ must be between {SMALLEST_DELTA:g} and 1; it is {delta}")


def _pairs(noise_multiplier: float, plan: NoisePlan) -> tuple[Pair, ...]:
    """Return the pairs that dominate a step with secret batches: Theorem 7 (b) and (c)."""
    shift, q, n, most = 1.0 / noise_multiplier, plan.rate, plan.units, plan.max_batch
    # If a batch has room for all units, no sample is cut.
    if most == n:
        return (Pair(q, shift),)
    # scipy's tails are assumed to be correct to nine digits.
    full = float(stats.binom.sf(most - 1, n - 1, q)) * (1 + 1e-9)
    full = min(max(full, 1e-307), 1.0)
    kept = most / n * float(stats.binom.sf(most, n, q)) / full * (1 + 1e-8)
    cut = Pair(min(kept, q * most / (most + 1)) or q, 2.0 * shift, full)
    return (Pair(q, shift, 1.0 - full), cut) if full < 1.0 else (cut,)


def _epsilon_of_gaussians(noise_multiplier: float, plan: NoisePlan, delta: float) -> float:
    """Return ε when batches may be known: Theorem 7 (e), without a privacy loss distribution."""
    always = plan.epochs if plan.batches == "partition" else plan.steps
    times, log_weights = np.array([always]), np.zeros(1)
    if plan.batches != "partition" and plan.batch < plan.units:
        times = np.arange(1, plan.steps + 1)
        log_weights = stats.binom.logpmf(times, plan.steps, plan.rate)
        digits = float(special.gammaln(plan.steps + 2)) - plan.steps * math.log(plan.rate)
        log_weights += 2.0**-46 * digits  # logarithms of factorials have rounding errors
        common = log_weights > math.log(_RARE * delta / plan.steps)
        times, log_weights = times[common], log_weights[common]
    mu = 2.0 * np.sqrt(times) / noise_multiplier

    def share(eps: float) -> float:
        """An upper bound of δ(eps)/δ."""
        logs = log_weights + gaussian_log_delta(mu, eps) - math.log(delta)
        return float(np.exp(np.minimum(logs, 700.0)).sum()) + 2 * _RARE

    high = 1.0
    while share(high) > 1:
        high *= 2
        if high > 2.0**20:
            return math.inf
    return least_epsilon(share, 0.0, high)


def least_noise(epsilon_of: Callable[[float], float], target: float, words: str) -> float:
    """Return nearly the least σ with ε(σ) ≤ target. The returned σ always satisfies it.

    ε must fall as σ rises. The search starts at large σ, where an evaluation is cheap, and solves
    log ε(exp s) = log target, whose left side is nearly a straight line in s.
    """

    def excess(log_sigma: float) -> float:
        return math.log(max(epsilon_of(math.exp(log_sigma)), 1e-300) / target)

    high, step = math.log(16.0), math.log(2.0)
    while excess(high) > 0:
        high += 2 * step
        if high > math.log(LARGEST_NOISE_MULTIPLIER):
            raise ValueError(
                f"{words} is too small: no noise multiplier up to "
                f"{LARGEST_NOISE_MULTIPLIER:,.0f} reaches it; raise ε or δ, or use fewer steps"
            )
    low = high - step
    while excess(low) <= 0:
        low, high = low - step, low
        if low < math.log(_SMALLEST_NOISE_MULTIPLIER):
            return math.exp(high)
    if excess(high) == 0.0:
        return math.exp(high)
    found = optimize.brentq(excess, low, high, xtol=_RELATIVE_TOLERANCE / 2)
    while excess(found) > 0:
        found += _RELATIVE_TOLERANCE / 2
    return math.exp(found)
