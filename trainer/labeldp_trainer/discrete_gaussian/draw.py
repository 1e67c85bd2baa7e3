"""Discrete Gaussian noise on an integer statistic, from fresh secret randomness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int64

from labeldp_compile.toolkit import random_words
from labeldp_trainer.discrete_gaussian.delta import delta, excess, gaussian_excess, least_sigma
from labeldp_trainer.discrete_gaussian.sample import discrete_gaussian

_EXACT = 40  # bits of a scale, so that a float64 holds it exactly


@dataclass(frozen=True)
class ProvedNoise:
    """Noise on an integer statistic, with the numbers that prove its (ε, δ).

    Attributes:
        squared_sensitivity: bounds the squared distance of the statistics of neighbours.
        coordinates: of the statistic.
        sigma: the scale, in lattice steps.
    """

    squared_sensitivity: int
    coordinates: int
    sigma: int

    @classmethod
    def least(
        cls, squared_sensitivity: int, coordinates: int, epsilon: Fraction, stated: Fraction
    ) -> ProvedNoise:
        """The least that gives (ε, δ). Raises ValueError if no supported noise does."""
        sigma = with_float(least_sigma(squared_sensitivity, epsilon, stated, coordinates))
        return cls(squared_sensitivity, coordinates, sigma)

    def proved_delta(self, epsilon: Fraction) -> Fraction:
        """An upper bound of δ at ε, by Theorem 13; 1 if nothing is proved."""
        return delta(self.squared_sensitivity, self.sigma, epsilon, self.coordinates)

    def excess(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Pr[privacy loss > ε]: an upper bound, and the number for continuous noise."""
        squared = Fraction(self.squared_sensitivity, self.sigma**2)
        return excess(self.proved_delta, epsilon), gaussian_excess(squared, epsilon)

    def details(self, epsilon: Fraction) -> dict[str, Any]:
        """What a statement says about it."""
        proved = math.nextafter(float(self.proved_delta(epsilon)), 1.0)
        return {
            "sigma": self.sigma,
            "squared_sensitivity": self.squared_sensitivity,
            "coordinates": self.coordinates,
            "proved_delta": proved,
        }


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
