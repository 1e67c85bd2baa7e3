"""Noisy votes: how much a label changes them, the noise that hides it, and how many there are.

The numbers of teachers and queries depend only on the number of rows, classes, ε and δ. The rule
was chosen on training rows of Fashion-MNIST, 10,000 of them held out, and on no test row: the noise
on a count is a fifth of all teachers, and a teacher has ten rows per class, or four where queries
would be too few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Int64

from labeldp_trainer.discrete_gaussian.draw import ProvedNoise, noisy

VOTE = 1 << 20
"""Lattice steps in a vote."""
_TEACHERS_A_NOISE = 5
_ROWS_A_CLASS, _LEAST_ROWS_A_CLASS = 10, 4
_QUERIES_A_CLASS = 3
_MOST_QUERIES, _ROWS_A_QUERY = 3000, 20


def squared_sensitivity(queries: int) -> int:
    """Of the histograms, in squared steps: one teacher moves one vote per query (Theorem 17)."""
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
        """The least that gives (ε, δ). Raises ValueError if no supported noise does."""
        squared, coordinates = squared_sensitivity(queries), queries * classes
        return cls(queries, classes, ProvedNoise.least(squared, coordinates, epsilon, stated).sigma)

    @property
    def proved(self) -> ProvedNoise:
        """On all counts together, by Theorem 17."""
        squared, coordinates = squared_sensitivity(self.queries), self.queries * self.classes
        return ProvedNoise(squared, coordinates, self.sigma)

    @property
    def deviation(self) -> float:
        """Of a count, in votes."""
        return self.sigma / VOTE

    def add(self, votes: Int64[np.ndarray, "q k"]) -> Int64[np.ndarray, "q k"]:
        """The votes in lattice steps, with noise from secure randomness."""
        if votes.shape != (self.queries, self.classes):
            raise ValueError("the noise is for other votes")
        return noisy(votes * VOTE, self.sigma)


@dataclass(frozen=True)
class Sizes:
    """T teachers, and the noise on their votes on Q queries."""

    teachers: int
    noise: VoteNoise


def chosen(
    rows: int,
    units: int,
    classes: int,
    epsilon: Fraction,
    delta: Fraction,
    teachers: int | None,
    queries: int | None,
    unit: str = "labels",
) -> Sizes:
    """The given numbers, and the others by the rule. ``units`` are labels or users, as ``unit``
    says.

    Raises ValueError if the noise hides the votes of all teachers together.
    """
    one = VoteNoise.least(1, classes, epsilon, delta).deviation  # it grows like √Q
    heard = _TEACHERS_A_NOISE * one  # teachers for one query
    if teachers is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, 1)) if queries is None else queries
        enough = heard * math.sqrt(min(_QUERIES_A_CLASS * classes, most))
        large = max(units / (_ROWS_A_CLASS * classes), enough)
        small = min(units / (_LEAST_ROWS_A_CLASS * classes), heard * math.sqrt(most))
        teachers = max(int(min(large, small)), 1)
    if queries is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, classes), rows)
        queries = min(int((teachers / heard) ** 2), most)
        if queries < min(classes, rows):
            raise ValueError(
                f"is too small: the noise hides the votes of at most {teachers:,} teachers "
                f"for {units:,} {unit}, on as many queries as there are classes ({classes:,}); "
                "raise it, or use one_release"
            )
    noise = VoteNoise.least(queries, classes, epsilon, delta)
    if noise.deviation > teachers:
        raise ValueError(
            f"is too small: the noise on each count has a standard deviation of "
            f"{noise.deviation:,.3g}, but there are only {teachers:,} teachers; raise it, use "
            "fewer queries, or use one_release"
        )
    return Sizes(teachers, noise)
