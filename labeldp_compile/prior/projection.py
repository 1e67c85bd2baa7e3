"""Post-processing of a noisy histogram: the nearest one with the public number of rows.

Clipping negative counts at zero alone adds weight to every rare label: half of the noise
survives and none of it cancels. The number of rows n is public, so the Euclidean projection
onto {c ≥ 0, Σ c = n} removes that excess at no cost in privacy (benchmarks/prior.py measures
by how much the loss falls).

Where ε₁ was chosen for the least expected loss, noise is as large as counts: what does not stand
out from the noise is taken for even (James and Stein 1961), so that labels which are alike are not
set apart by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from labeldp_compile.histogram_noise import variance
from labeldp_compile.prior.discrete_laplace import NoisyHistogram, cell_of_label


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
