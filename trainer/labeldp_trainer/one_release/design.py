"""Which columns, weights and noise shape give the least expected error: from features alone.

The noise is the same in all directions of the lattice, so that a metric of the rows is the shape of
the noise. For coefficients with independent priors of variance τⱼ² and rows of equal length in the
metric, the precision pⱼ that a column gets minimises Σ τⱼ²/(1 + τⱼ²·pⱼ) under a bound of Σ pⱼ:
pⱼ = max(0, μ − 1/τⱼ²). Columns with none are left out. How far this is from the best shape for the
same rows is certified by duality (``gap``).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.one_release.lattice import UNIT, Weights
from labeldp_trainer.one_release.rows import PublicRows

SIGNAL_SHARE = 0.7
"""Of the variance of a label, what features explain, roughly."""


class Expectation(NamedTuple):
    """What is expected of labels before any is seen.

    Fixed on training rows that were held out, and no test row: for classes the last 10,000 of
    Fashion-MNIST, for numbers 15,000 of the first 50,000 of weeks worked (docs/training.md).

    Attributes:
        power: of the spectrum, to which the prior variances of coefficients are proportional.
        quantile: rows shorter than this quantile of the lengths are not made longer.
    """

    power: float
    quantile: float


CLASSES, NUMBERS = Expectation(0.7, 0.25), Expectation(1.2, 0.5)


class RowMoments(NamedTuple):
    """Sums over all rows, in units of the lattice's UNIT.

    Attributes:
        cross: [d, d] Σ q·xᵀ of integer rows and used columns.
        gram: [d, d] Σ q·qᵀ.
        total: [d] Σ q.
    """

    cross: Float64[np.ndarray, "d d"]
    gram: Float64[np.ndarray, "d d"]
    total: Float64[np.ndarray, " d"]


def design(
    rows: PublicRows,
    prior: Float64[np.ndarray, " p+1"],
    noise: float,
    quantile: float,
    *,
    evenly: bool = False,
) -> Weights:
    """The weights for whitened vectors.

    ``prior`` are the variances of coefficients, the constant's first; ``noise`` the standard
    deviation of the noise on a sum of rows of length 1. ``evenly`` gives all columns the same
    precision, so that none is left out and the units of features do not matter (D-optimality).
    """
    precision = np.ones_like(prior)
    if not evenly:
        precision = water_filling(prior, (rows.units / noise) ** 2)
    columns = np.flatnonzero(precision > 0)
    metric = np.sqrt(precision[columns] / precision.max()).astype(np.float32)
    floor = _floor(Weights(columns, metric, 0.0, 1.0), rows.vectors, quantile)
    return Weights(columns, metric, floor, UNIT - UNIT / 1024)


def prior_variances(
    relative: Float64[np.ndarray, " d"], label_variance: float, power: float
) -> Float64[np.ndarray, " d"]:
    """[d] of the constant, which comes first, and of whitened columns."""
    signal = relative[1:] ** power
    share = SIGNAL_SHARE * label_variance / max(signal.sum(), 1e-300)
    return np.concatenate([[label_variance], share * signal])


def water_filling(prior: Float64[np.ndarray, " d"], budget: float) -> Float64[np.ndarray, " d"]:
    """[d] precisions max(0, μ − 1/τ²) whose sum is the budget; at least one is positive."""
    costs = np.sort(1 / prior)
    sums = np.cumsum(costs)
    counts = np.arange(1, len(costs) + 1)
    levels = (budget + sums) / counts
    level = levels[np.flatnonzero(levels > costs)[-1]]
    return np.maximum(0.0, level - 1 / prior)


def moments(weights: Weights, rows: PublicRows) -> RowMoments:
    """Those of all rows."""
    d = weights.width
    cross, gram, total = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    for _, used, _, integers in weights.chunks(rows):
        q = integers.astype(np.float32) / np.float32(UNIT)
        cross += q.T @ used
        gram += q.T @ q
        total += q.sum(axis=0, dtype=np.float64)
    return RowMoments(cross, gram, total)


def certified(
    found: RowMoments, units: int, prior: Float64[np.ndarray, " d"], noise: float
) -> tuple[float, float]:
    """The expected error tr (T⁻¹ + P)⁻¹ of coefficients, and how far it is from the best.

    That is: by how much at most it exceeds the least of any noise shape for these rows,
    relatively. Rows b = H⁻¹·q estimate coefficients; noise of precision P hides a label if
    b·P·b ≤ 1/noise² for all rows, and all labels of a user only if the sum of b·P·b over the user's
    rows is at most that: some signs make ‖Σ ±P^½·b‖² at least as large. By weak duality, with V the
    mean over ``units`` of the sum of b·bᵀ, no such P has an error below
    (tr V^½)²/(tr T⁻¹V + 1/noise²).
    """
    cross, gram, _ = found
    inverse = np.linalg.pinv(cross)
    precision = cross.T @ cross / noise**2
    expected = float(np.trace(np.linalg.inv(np.diag(1 / prior) + precision)))
    mean = inverse @ (gram / units) @ inverse.T
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh((mean + mean.T) / 2), 0)).sum()
    least = roots**2 / (float((np.diag(mean) / prior).sum()) + 1 / noise**2)
    return expected, max(expected / least - 1, 0.0)


def _floor(weights: Weights, vectors: Float32[np.ndarray, "n p"], quantile: float) -> float:
    found = []
    for start in range(0, len(vectors), 4096):
        moved = weights.used(vectors[start : start + 4096]) * weights.metric
        found.append(np.sqrt(np.square(moved, dtype=np.float64).sum(axis=1)))
    return float(max(np.quantile(np.concatenate(found), quantile), 1e-6))
