"""The private histogram: exact discrete Laplace noise on integer counts.

Substituting one label moves one unit from one count to another, so the L1 sensitivity is 2; the
number of rows is public. Noise of scale 2/ε₁ makes the histogram ε₁-DP (Algorithm 4 of the
RR-on-Bins paper, 2023, with discrete noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.prior.laplace_noise import discrete_laplace

L1_SENSITIVITY = 2


@dataclass(frozen=True)
class NoisyHistogram:
    """Counts [k] after noise (some may be negative), and the scale of the noise."""

    counts: list[int]
    scale: float


Levels = tuple[NoisyHistogram, NoisyHistogram]
"""Noisy counts of all rows, and of all tables one behind the other."""


def noisy_histogram(counts: NDArray[np.int64], epsilon: Fraction) -> NoisyHistogram:
    """An ``epsilon``-DP histogram of counts [k] under substitution of one label.

    The scale is the least float64 from 2/ε upwards, and the noise is that of the rational number
    that this float is: at most ε, exactly.
    """
    least = L1_SENSITIVITY / epsilon
    scale = float(least)
    if Fraction(scale) < least:
        scale = math.nextafter(scale, math.inf)
    noise = discrete_laplace(len(counts), Fraction(scale))
    return NoisyHistogram([a + b for a, b in zip(counts.tolist(), noise, strict=True)], scale)


def seeded_histogram(counts: NDArray[np.int64], epsilon: Fraction, seed: int) -> NoisyHistogram:
    """The same noise from a seeded generator: for tests, and INSECURE.

    A discrete Laplace number is the difference of two geometric ones.
    """
    scale = float(L1_SENSITIVITY / epsilon)
    generator = np.random.default_rng(seed)
    success = -math.expm1(-1 / scale)
    first, second = generator.geometric(success, size=(2, len(counts)))
    return NoisyHistogram([int(c) for c in counts + first - second], scale)


def cell_of_label(labels: int, cells: int) -> NDArray[np.int64]:
    """[labels] the cell of each label: neighbours, as many in one as in another, give or take 1."""
    return np.arange(labels, dtype=np.int64) * cells // labels


def coarse(counts: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """[cells] counts of cells, from those of labels: one label still moves two of them by one."""
    joined = np.zeros(cells, dtype=np.int64)
    np.add.at(joined, cell_of_label(len(counts), cells), counts)
    return joined
