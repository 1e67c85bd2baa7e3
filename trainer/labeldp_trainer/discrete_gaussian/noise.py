"""(ε, δ) of discrete Gaussian noise on integers, proved with rationals (Theorem 13).

The continuous Gaussian's δ(ε) is exact (Balle and Wang 2018, Theorem 8), and rounding its output to
integers is post-processing. The discrete Gaussian is within a total variation τ of the rounded one.
So its δ(ε) is at most that of the continuous one plus (1 + e^ε)·τ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64
from labeldp_verify.analysis import exp_bounds, exp_upper

from labeldp_compile.toolkit import random_words
from labeldp_trainer.discrete_gaussian.sample import MOST_SIGMA, discrete_gaussian

_PI_LOW = Fraction(Decimal("3.14159265358979323846264338327950288419716939937510582097494459"))
_PI_HIGH = _PI_LOW + Fraction(1, 10**62)
LEAST_SIGMA = 64
"""The least scale that Theorem 13 covers, in lattice steps."""
_SMALLER = tuple(map(Fraction, (8, 12, 16, 24)))
_SERIES_UP_TO = 5
_FRACTION_DEPTH = 60
_FURTHEST = Fraction(100)  # standard deviations; tails further out get the bound of this one
_BELOW = tuple(Fraction(k, 256) for k in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256))
_DENOMINATOR = 10**40
_SCALE = 10**80


def tail_bounds(t: Fraction) -> tuple[Fraction, Fraction]:
    """Rational lower and upper bounds of Pr[N(0, 1) > t]."""
    if t < 0:
        low, high = tail_bounds(-t)
        return 1 - high, 1 - low
    if t > _FURTHEST:
        return Fraction(0), tail_bounds(_FURTHEST)[1]
    density_low, density_high = _density(t)
    if t <= _SERIES_UP_TO:
        low, high = _series(t)
        return (
            max(Fraction(1, 2) - density_high * high, Fraction(0)),
            Fraction(1, 2) - density_low * low,
        )
    low, high = _mills(t)
    return density_low * low, density_high * high


@functools.cache  # each stage of a release asks for the same ones
def continuous_delta(ratio: Fraction, epsilon: Fraction) -> Fraction:
    """An upper bound of δ(ε) of N(0, σ²I) for a shift of length Δ, with Δ/σ = ``ratio`` > 0.

    δ(ε) = Φ(r/2 − ε/r) − e^ε·Φ(−r/2 − ε/r), which rises with r.
    """
    centre, half = epsilon / ratio, ratio / 2
    first = tail_bounds(_up(centre - half, -1))[1]
    second = tail_bounds(_up(centre + half, 1))[0]
    return max(first - exp_bounds(epsilon)[0] * second, Fraction(0))


class NoiseError(ValueError):
    """No noise that is supported keeps the promise. It tells nothing of labels."""


def rounding_distance(sigma: int, coordinates: int) -> Fraction:
    """An upper bound of the total variation between independent discrete Gaussians of scale
    ``sigma`` ≥ 64 and as many continuous ones, rounded to the nearest integer.

    1/(45·σ²) for each, which includes the error of the sampler: Theorem 13 (c) and (e).
    """
    if sigma < LEAST_SIGMA:
        raise ValueError("the bound holds from σ = 64 on")
    return Fraction(coordinates, 45 * sigma * sigma)


class ProvedNoise(NamedTuple):
    """Discrete Gaussian noise on an integer vector, with the numbers that prove its (ε, δ).

    Attributes:
        squared_sensitivity: bounds the squared L2 distance of the vectors of neighbours.
        sigma: the scale, in the vector's units.
        coordinates: of the vector.
    """

    squared_sensitivity: int
    sigma: int
    coordinates: int

    @classmethod
    def least(
        cls, squared_sensitivity: int, coordinates: int, epsilon: Fraction, stated: Fraction
    ) -> ProvedNoise:
        """The least that gives (ε, δ). Raises ValueError if no supported noise does."""
        sigma = with_float(least_sigma(squared_sensitivity, epsilon, stated, coordinates))
        return cls(squared_sensitivity, sigma, coordinates)

    def proved_delta(self, epsilon: Fraction) -> Fraction:
        """An upper bound of δ at ε, by Theorem 13; 1 if nothing is proved."""
        return composed_delta([self], epsilon)

    def excess(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Pr[privacy loss > ε]: an upper bound, and the number for continuous noise."""
        return excess(self.proved_delta, epsilon), gaussian_excess(squared_ratio([self]), epsilon)

    def details(self, epsilon: Fraction) -> dict[str, Any]:
        """The entry of a statement about it."""
        proved = math.nextafter(float(self.proved_delta(epsilon)), 1.0)
        return {
            "sigma": self.sigma,
            "squared_sensitivity": self.squared_sensitivity,
            "coordinates": self.coordinates,
            "proved_delta": proved,
        }


def composed_delta(
    releases: Sequence[ProvedNoise], epsilon: Fraction, budget: Fraction = Fraction(0)
) -> Fraction:
    """An upper bound of δ(ε) of releases one after another; 1 if nothing is proved.

    Continuous Gaussians compose as one of squared ratio Σ Δ²/σ² (Dong, Roth and Su 2022). What is
    released may depend on earlier answers if every history has a Σ Δ²/σ² of at most ``budget``, and
    this bound is at most δ for every history (Theorem 18; Theorem 13 for a single release).
    """
    if any(each.sigma < LEAST_SIGMA for each in releases):
        return Fraction(1)
    distance = sum(
        (rounding_distance(each.sigma, each.coordinates) for each in releases), Fraction(0)
    )
    ratio = root_up(max(squared_ratio(releases), budget))
    if ratio == 0:
        return Fraction(0)
    proved = (
        continuous_delta(ratio, less) + (1 + exp_upper(less)) * distance
        for less in smaller(epsilon)
    )
    return min(Fraction(1), *proved)


def smaller(epsilon: Fraction) -> tuple[Fraction, ...]:
    """ε, and some below it at which a δ can be smaller: e^ε multiplies the distance of noises.

    What holds at a smaller ε holds at this one.
    """
    return (epsilon, *(less for less in _SMALLER if less < epsilon))


def excess_bound(epsilon: Fraction, less: Fraction, delta_of_less: Fraction) -> Fraction:
    """An upper bound of Pr[privacy loss > ε], from an upper bound of δ at ε′ = ``less`` < ε.

    δ(ε′)/(1 − e^(ε′ − ε)): Theorem 20.
    """
    return min(delta_of_less / (1 - exp_upper(less - epsilon)), Fraction(1))


def excess(profile: Callable[[Fraction], Fraction], epsilon: Fraction) -> Fraction:
    """The least ``excess_bound`` of some ε′ below ε; ``profile`` gives upper bounds of δ(ε′)."""
    tried = (epsilon * (1 - part) for part in _BELOW)
    return min(excess_bound(epsilon, less, profile(less)) for less in tried)


def gaussian_excess(squared: Fraction, epsilon: Fraction) -> Fraction:
    """Pr[privacy loss > ε] of continuous Gaussian noise with Δ²/σ² = r², rounded up.

    The loss is normal, with mean r²/2 and variance r².
    """
    ratio = root_up(squared)
    return tail_bounds(_up(epsilon / ratio - ratio / 2, -1))[1]


def squared_ratio(releases: Sequence[ProvedNoise]) -> Fraction:
    """Σ Δ²/σ²: what the releases spend of ``greatest_ratio``."""
    return sum((Fraction(r.squared_sensitivity, r.sigma**2) for r in releases), Fraction(0))


@functools.cache
def greatest_ratio(epsilon: Fraction, stated_delta: Fraction) -> Fraction:
    """The largest Σ Δ²/σ² of continuous noise that is (ε, δ)-DP, to 1 in 10⁶.

    1/20 of δ is left for the distance of discrete from continuous noise.
    """
    most = stated_delta * Fraction(19, 20)
    low, high = Fraction(1, 1 << 40), Fraction(1 << 14)
    if continuous_delta(root_up(low), epsilon) > most:
        raise NoiseError("ε or δ is too small for any supported noise; raise it")
    while high / low > 1 + Fraction(1, 1 << 20):
        middle = _short(root_up(low * high), -1)
        holds = continuous_delta(root_up(middle), epsilon) <= most
        low, high = (middle, high) if holds else (low, middle)
    return low


def least_sigma(
    squared_sensitivity: int, epsilon: Fraction, stated_delta: Fraction, coordinates: int
) -> int:
    """The least integer scale σ whose proved δ is at most ``stated_delta``, to 1 in 10⁶.

    Raises ValueError if no supported σ is large enough.
    """
    if squared_sensitivity < 1:
        raise NoiseError("squared_sensitivity must be at least 1; at 0 there is nothing to protect")

    def holds(sigma: int) -> bool:
        proved = composed_delta([ProvedNoise(squared_sensitivity, sigma, coordinates)], epsilon)
        return proved <= stated_delta

    high = max(math.isqrt(squared_sensitivity), 2 * LEAST_SIGMA)
    if high > MOST_SIGMA or not holds(MOST_SIGMA):
        raise NoiseError("ε or δ is too small for any supported noise; raise one of them")
    while not holds(high):
        high = min(2 * high, MOST_SIGMA)
    low = high // 2
    while low > LEAST_SIGMA and holds(low):
        low, high = low // 2, low
    low = max(low, LEAST_SIGMA)
    while high - low > max(low >> 20, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _density(t: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bounds of e^(−t²/2)/√(2π)."""
    low, high = exp_bounds(-t * t / 2)
    return (_short(low / root_up(2 * _PI_HIGH), -1), _short(high / _root_down(2 * _PI_LOW), 1))


def _series(t: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of Σ t^(2n+1)/(2n+1)!!, which is (Φ(t) − ½)/φ(t); all terms are positive."""
    # Terms are multiples of 1/_SCALE, rounded up; later terms enlarge this less than 10⁶-fold.
    top, bottom = t.numerator**2, t.denominator**2
    total, term, n = 0, math.ceil(t * _SCALE), 0
    while True:
        total += term
        n += 1
        term = -(-term * top // (bottom * (2 * n + 1)))
        shrinks = 2 * top < bottom * (2 * n + 3)  # each further term is less than half of the last
        if shrinks and term < _SCALE // 10**60:
            low = Fraction(total, _SCALE) - Fraction(n, 10**64)
            return max(low, Fraction(0)), Fraction(total + 2 * term, _SCALE)


def _mills(t: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of (1 − Φ(t))/φ(t) = 1/(t + 1/(t + 2/(t + 3/(t + …)))): convergents alternate."""
    found = []
    for depth in (_FRACTION_DEPTH, _FRACTION_DEPTH + 1):
        top, bottom = t.numerator, t.denominator  # not reduced in between, which would be slow
        for k in range(depth, 0, -1):
            top, bottom = t.numerator * top + k * t.denominator * bottom, t.denominator * top
        found.append(Fraction(bottom, top))
    low, high = min(found), max(found)
    return _short(low, -1), _short(high, 1)


def root_up(x: Fraction) -> Fraction:
    """A rational at least √x."""
    scaled = -(-x.numerator * _DENOMINATOR**2 // x.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), _DENOMINATOR)


def _root_down(x: Fraction) -> Fraction:
    """A rational at most √x."""
    return Fraction(math.isqrt(x.numerator * _DENOMINATOR**2 // x.denominator), _DENOMINATOR)


def _up(t: Fraction, sign: int) -> Fraction:
    """t with a short denominator, moved in the direction of ``sign``."""
    scaled = t * _DENOMINATOR
    whole = math.ceil(scaled) if sign > 0 else math.floor(scaled)
    return Fraction(whole, _DENOMINATOR)


def _short(x: Fraction, sign: int) -> Fraction:
    """x with 80 digits, rounded in the direction of ``sign``."""
    if x == 0:
        return x
    unit = 1 << max(0, 266 + x.denominator.bit_length() - x.numerator.bit_length())
    scaled = x * unit
    return Fraction(math.ceil(scaled) if sign > 0 else math.floor(scaled), unit)


# Discrete Gaussian noise on an integer statistic, from fresh secret randomness.

_EXACT = 40  # bits of a scale, so that a float64 holds it exactly


def with_float(sigma: int) -> int:
    """The least integer from σ upwards that a float64 holds exactly, to 40 bits."""
    shift = max(sigma.bit_length() - _EXACT, 0)
    return -(-sigma >> shift) << shift


def noisy(statistic: Int64[np.ndarray, "d k"], sigma: int) -> Int64[np.ndarray, "d k"]:
    """The statistic plus independent discrete Gaussian noise of scale σ, from secure randomness.

    Sums outside int64 are clamped to it.
    """
    if int(float(sigma)) != sigma:
        raise ValueError("σ must be exact as a float64")
    ends = np.iinfo(np.int64)
    noise = discrete_gaussian(random_words, statistic.size, sigma).tolist()
    sums = [value + more for value, more in zip(statistic.ravel().tolist(), noise, strict=True)]
    held = [min(max(total, ends.min), ends.max) for total in sums]
    return np.array(held, np.int64).reshape(statistic.shape)
