"""How the budget is divided among the parts of a release: from public facts alone.

The shares are those of Σ Δ²/σ², in which Gaussian noise composes without loss. They were fixed on
tables that no table of results uses (benchmarks/notes/models-of-tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Float64
from labeldp_verify.analysis import exp_upper

from labeldp_trainer.discrete_gaussian.noise import (
    LEAST_SIGMA,
    ProvedNoise,
    composed_delta,
    continuous_delta,
    excess,
    greatest_ratio,
    root_up,
    smaller,
    squared_ratio,
    with_float,
)
from labeldp_trainer.discrete_gaussian.sample import MOST_SIGMA
from labeldp_trainer.one_release.rows import squared_sensitivity
from labeldp_trainer.staged_release.scale import MOST_GROUPS, RESIDUAL_BINS

_EQUAL, _OCTAVES = 16, 12
MOST_BINS = max(_EQUAL + 4 * _OCTAVES + 2, MOST_GROUPS * RESIDUAL_BINS)
"""Of a histogram of labels, and more than one of sizes has."""


@dataclass(frozen=True)
class HistogramBins:
    """Bin b holds x with edges[b] ≤ x < edges[b + 1]; the first and the last have no outer end.

    Attributes:
        labels: [b + 1] edges of labels, from one end of the range to the other.
        sizes: [s + 1] edges of sizes of residuals.
    """

    labels: Float64[np.ndarray, " b"]
    sizes: Float64[np.ndarray, " s"]

    @classmethod
    def of(cls, ends: tuple[float, float]) -> HistogramBins:
        """From a range of labels."""
        low, high = ends
        cuts = (high - low) / 2 * 2.0 ** np.linspace(-_OCTAVES, 0.5, 4 * _OCTAVES + 3)
        return cls(_label_edges(low, high), np.r_[0, cuts, high - low])


def _label_edges(low: float, high: float) -> Float64[np.ndarray, " b"]:
    """Equal bins, cut again where distances from the number nearest to 0 double, and halfway."""
    nearest = min(max(low, 0.0), high)
    doubled = max(high - nearest, nearest - low) * 0.5 ** np.arange(_OCTAVES)
    away = np.concatenate([doubled, 0.75 * doubled])
    cuts = np.concatenate([nearest + away, nearest - away])
    equal = np.linspace(low, high, _EQUAL + 1)
    return np.unique(np.concatenate([equal, cuts[(cuts > low) & (cuts < high)]]))


Kind = Literal["labels", "sums", "sizes", "residuals"]
KINDS: dict[bool, tuple[tuple[Kind, Fraction], ...]] = {
    True: (("labels", Fraction(4, 100)), *(("sums", Fraction(24, 100)),) * 4),
    False: (
        ("labels", Fraction(40, 1000)),
        ("sums", Fraction(190, 1000)),
        ("sizes", Fraction(20, 1000)),
        ("sums", Fraction(205, 1000)),
        ("sizes", Fraction(20, 1000)),
        ("sums", Fraction(225, 1000)),
        ("sizes", Fraction(20, 1000)),
        ("sums", Fraction(240, 1000)),
        ("residuals", Fraction(40, 1000)),
    ),
}
"""The parts of a release of classes, and of numbers, with their shares."""


MOST_SUMS = 450
"""For each output, of a part."""
_MANY_ROWS, _SUMS_OF_MANY = 1 << 16, 300
COUNT = 1 << 30
"""Lattice steps in a row of a histogram."""
_ROWS_OF_REFINED, _MOST_REFINED = 500, 4  # rows of a Gaussian mechanism of μ = 1


def most_sums(rows: int) -> int:
    """For each output, of a part; fewer of many rows, for speed."""
    return _SUMS_OF_MANY if rows > _MANY_ROWS else MOST_SUMS


def histogram_sensitivity(rows: int) -> int:
    """Squared, of a histogram in which one owner has at most that many rows, in squared steps."""
    return 2 * rows * rows * COUNT * COUNT


class DeltaError(ValueError):
    """δ is too small for what a staged release would tell."""

    def __init__(self) -> None:
        """One message wherever it shows."""
        super().__init__("δ is too small for the parts of a staged release; raise it")


@dataclass(frozen=True)
class BudgetPlan:
    """The parts of a release and what each may spend.

    Attributes:
        parts: kinds and shares of the budget.
        ratio: the budget, Σ Δ²/σ² over all parts.
    """

    parts: Sequence[tuple[Kind, Fraction]]
    ratio: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, *, classes: bool) -> BudgetPlan:
        """That of (ε, δ). Raises ValueError if no noise that is resolved is large enough."""
        return cls(KINDS[classes], greatest_ratio(epsilon, delta))

    def refined(self, rows: float) -> int:
        """Main effects, and pairs, that get more functions after a stage: more of many rows."""
        return min(int(rows * math.sqrt(self.ratio) / _ROWS_OF_REFINED), _MOST_REFINED)

    def sigma(self, part: int, squared_sensitivity: int) -> int:
        """The least scale for a part. Raises ValueError if no sampler has it."""
        square = squared_sensitivity / (self.parts[part][1] * self.ratio)
        sigma = max(with_float(math.isqrt(math.floor(square)) + 1), LEAST_SIGMA)
        if sigma > MOST_SIGMA:
            raise ValueError("ε or δ is too small for any supported noise; raise it")
        return sigma

    def proved_delta(self, noises: Sequence[ProvedNoise], epsilon: Fraction) -> Fraction:
        """An upper bound of δ at ε of parts, or of the first of them; 1 if nothing is proved.

        It is that of the whole budget, which no history exceeds: Theorem 18 (c) needs a bound that
        is the same for every history.
        """
        if squared_ratio(noises) > self.ratio:
            return Fraction(1)
        return composed_delta(noises, epsilon, self.ratio)

    def excess(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """An upper bound of Pr[privacy loss > ε], for any history.

        The distance from continuous noise is at most T* of Theorem 18 (d): ``proved_delta`` is at
        most ``delta`` at one of the ε′ that it tries.
        """
        ratio = root_up(self.ratio)
        distance = max(
            (delta - continuous_delta(ratio, less)) / (1 + exp_upper(less))
            for less in smaller(epsilon)
        )
        return excess(
            lambda less: continuous_delta(ratio, less) + (1 + exp_upper(less)) * distance, epsilon
        )

    def require_resolved(
        self, epsilon: Fraction, delta: Fraction, outputs: int, most: int, length: float
    ) -> None:
        """Raise ValueError unless δ is proved for the parts, for any questions that they ask.

        ``outputs`` are the columns of sums, ``most`` the rows of an owner; no design has rows
        that are all shorter than half of ``length``, in lattice steps.
        """
        noises, short = [], int(length / 2)
        for number, (kind, _) in enumerate(self.parts):
            sums = kind == "sums"
            moved = histogram_sensitivity(most)
            if sums:
                moved = squared_sensitivity(short * short, classes=outputs > 1)
            size = MOST_SUMS * outputs if sums else MOST_BINS + outputs
            noises.append(ProvedNoise(moved, self.sigma(number, moved), size))
        if self.proved_delta(noises, epsilon) > delta:
            raise DeltaError()
