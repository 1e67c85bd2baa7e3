"""Noisy votes: what a label can change in them, exactly, and the noise that hides it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from labeldp_trainer.discrete_gaussian.delta import delta, least_sigma
from labeldp_trainer.discrete_gaussian.draw import noisy, with_float

VOTE = 1 << 20
"""Lattice steps in a vote."""


def squared_sensitivity(queries: int) -> int:
    """Of the histograms, in squared steps: one teacher moves one vote a query (Theorem 17)."""
    return 2 * queries * VOTE * VOTE


@dataclass(frozen=True)
class VoteNoise:
    """Discrete Gaussian noise on the histograms of all queries together.

    Attributes:
        queries: Q.
        classes: K.
        sigma: in lattice steps.
    """

    queries: int
    classes: int
    sigma: int

    @classmethod
    def least(cls, queries: int, classes: int, epsilon: Fraction, stated: Fraction) -> VoteNoise:
        """The least that gives (ε, δ). Raises ValueError if none that is resolved does."""
        squared, coordinates = squared_sensitivity(queries), queries * classes
        sigma = with_float(least_sigma(squared, epsilon, stated, coordinates))
        return cls(queries, classes, sigma)

    @property
    def deviation(self) -> float:
        """Of a count, in votes."""
        return self.sigma / VOTE

    def proved_delta(self, epsilon: Fraction) -> Fraction:
        """An upper bound of δ at ε, by Theorem 17; 1 if nothing is proved."""
        squared = squared_sensitivity(self.queries)
        return delta(squared, self.sigma, epsilon, self.queries * self.classes)

    def add(self, votes: Int64[np.ndarray, "q k"]) -> Int64[np.ndarray, "q k"]:
        """The votes in lattice steps, with noise from secure randomness."""
        if votes.shape != (self.queries, self.classes):
            raise ValueError("the noise is for other votes")
        return noisy(votes * VOTE, self.sigma)


def in_votes(steps: Int64[np.ndarray, "q k"]) -> Float64[np.ndarray, "q k"]:
    """Noisy counts out of lattice steps."""
    counts: Float64[np.ndarray, "q k"] = steps / VOTE
    return counts
