"""The private histogram: exact discrete Laplace noise on integer counts.

Substituting one label moves one unit from one count to another, so the L1 sensitivity is 2; the
number of rows is public. Noise of scale 2/ε₁ makes the histogram ε₁-DP (Algorithm 4 of the
RR-on-Bins paper, 2023, with discrete noise).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.prior.laplace_noise import discrete_laplace

L1_SENSITIVITY = 2


@dataclass(frozen=True)
class NoisyHistogram:
    """Counts [k] after noise (some may be negative), and the scale of the noise."""

    counts: list[int]
    scale: float


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


# Post-processing of a noisy histogram: the nearest one with the public number of rows.
#
# Clipping negative counts at zero alone adds weight to every rare label: half of the noise
# survives and none of it cancels. The number of rows n is public, so the Euclidean projection
# onto {c ≥ 0, Σ c = n} removes that excess at no cost in privacy (benchmarks/prior.py measures
# by how much the loss falls).


def project_to_total(counts: Sequence[int], total: int) -> list[int]:
    """Integer weights [k] in proportion to the projection of integer counts [k]; total ≥ 1.

    The projection is max(c − τ, 0) for the τ that makes the sum ``total``; τ = (S_r − total)/r for
    the largest r whose r-th largest count exceeds it, S_r being the sum of the r largest. Times r,
    all of this is in integers.
    """
    descending = sorted(counts, reverse=True)
    sums = list(accumulate(descending))
    support = max(
        r for r in range(1, len(counts) + 1) if r * descending[r - 1] > sums[r - 1] - total
    )
    shift = sums[support - 1] - total
    weights = [max(support * count - shift, 0) for count in counts]
    common = math.gcd(*weights)
    return [weight // common for weight in weights]


# Post-processing where ε₁ was chosen for the least expected loss, and noise is as large as counts:
# what does not stand out from the noise is taken for even (James and Stein 1961), so that labels
# which are alike are not set apart by chance.

_SHRINK_STEPS = 1000


def shrunk_weights(noisy: NoisyHistogram, total: int, labels: int) -> list[int]:
    """Integer weights [labels] from noisy counts [cells] of ``total`` rows.

    Deviations from even counts are shrunk by the share of their squares that noise explains, and
    projected onto counts >= 0 that sum to the rows; each cell is spread evenly over its labels. The
    weights are rounded to a mean of at most ``total``.
    """
    counts = noisy.counts
    cells = len(counts)
    sizes = np.bincount(cell_of_label(labels, cells), minlength=cells).tolist()
    # In units of 1/labels rows, so that an even share of the rows is an integer.
    even = [total * size for size in sizes]
    away = [labels * count - mean for count, mean in zip(counts, even, strict=True)]
    squares = sum(deviation * deviation for deviation in away)
    noise = (cells - 1) * variance(noisy.scale) * labels**2
    kept = math.floor(_SHRINK_STEPS * max(1 - noise / squares, 0.0)) if squares else 0
    shrunk = [
        _SHRINK_STEPS * mean + kept * deviation for mean, deviation in zip(even, away, strict=True)
    ]
    weights = project_to_total(shrunk, _SHRINK_STEPS * labels * total)
    unit = labels * min(total, FINEST)
    whole = sum(weights)
    spread = [
        (2 * unit * w + size * whole) // (2 * size * whole)
        for w, size in zip(weights, sizes, strict=True)
    ]
    return [spread[cell] for cell in cell_of_label(labels, cells).tolist()]


FINEST = 10**6


def weights_of(noisy: NoisyHistogram, total: int, labels: int, *, shrunk: bool) -> list[int]:
    """Integer weights [labels] from noisy counts of ``total`` rows, shrunk towards even or not."""
    return shrunk_weights(noisy, total, labels) if shrunk else project_to_total(noisy.counts, total)


def variance(scale: float) -> float:
    """Of discrete Laplace noise of scale s: 2q/(1 − q)² with q = e^(−1/s)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2
