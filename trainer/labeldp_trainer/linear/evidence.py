"""Empirical Bayes: how strong the signal is, out of a noisy statistic whose noise is known.

S = H·θ + noise, θ with independent priors of variance c·spectrum^p times the scale of a column of
S. c and p are those of largest marginal likelihood of S. All of it is post-processing of S and of
features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

_SHARES, _POWERS = (-2.5, -0.7), (0.4, 0.8, 1.4)
_MOST_EVALUATIONS = 60
_LARGEST_POWER, _RANGE = 4.0, 20.0


@dataclass(frozen=True)
class Posterior:
    """Coefficients, given the statistic.

    Attributes:
        mean: [d, k].
        unexplained: of the prior variance of all but the constant, the share that is left.
    """

    mean: Float64[np.ndarray, "d k"]
    unexplained: float


def with_constant(
    spectrum: Float64[np.ndarray, " p"] | None, columns: int
) -> Float64[np.ndarray, " p+1"]:
    """A spectrum relative to its largest value, behind the 1 of the constant column."""
    if spectrum is None:
        return np.ones(columns + 1)
    return np.concatenate([[1.0], np.maximum(spectrum / spectrum.max(), 1e-12)])


def posterior(
    statistic: Float64[np.ndarray, "d k"],
    cross: Float64[np.ndarray, "d d"],
    noise: Float64[np.ndarray, "d d"],
    spectrum: Float64[np.ndarray, " d"],
    scales: Float64[np.ndarray, " k"],
    *,
    label_variance: float,
    constant: bool,
    targets: int,
) -> Posterior:
    """The posterior of θ with the likeliest prior.

    ``noise`` is the covariance of the noise of each column of S; ``constant`` says whether the
    first column is the 1, whose prior variance is that of a label; ``targets`` how many of the k
    columns are independent. ``scales`` are the prior variances of the columns of S, relative to one
    another; they count to the nearest power of 2.
    """
    signal, levels = slice(int(constant), None), _levels(scales)
    counted = targets / statistic.shape[1]

    def prior(point: Float64[np.ndarray, " 2"]) -> Float64[np.ndarray, " d"]:
        shape = spectrum ** min(max(point[1], 0.0), _LARGEST_POWER)
        share = math.exp(min(max(point[0], -_RANGE), _RANGE))
        variances = label_variance * share * shape / max(shape[signal].sum(), 1e-300)
        if constant:
            variances[0] = label_variance
        return np.asarray(np.maximum(variances, 1e-300))

    def surprise(point: Float64[np.ndarray, " 2"]) -> float:
        total, variances = 0.0, prior(point)
        for scale, columns in levels:
            factor = cho_factor((cross * (scale * variances)) @ cross.T + noise, lower=True)
            seen = statistic[:, columns]
            fit = float((seen * cho_solve(factor, seen)).sum())
            logs = float(np.log(np.diag(factor[0])).sum())
            total += counted * (0.5 * fit + len(columns) * logs)
        return total

    start = min(((x, p) for x in _SHARES for p in _POWERS), key=lambda q: surprise(np.array(q)))
    options = {"maxfev": _MOST_EVALUATIONS, "xatol": 0.01, "fatol": 0.1}
    found = minimize(surprise, np.array(start), method="Nelder-Mead", options=options).x
    variances, mean = prior(found), np.empty_like(statistic)
    left, whole = 0.0, 0.0
    for scale, columns in levels:
        before = scale * variances
        mean[:, columns], after = _conditioned(statistic[:, columns], cross, noise, before)
        left += len(columns) * float(after[signal].sum())
        whole += len(columns) * float(before[signal].sum())
    # whole is 0 if noise leaves nothing but the constant
    return Posterior(mean, min(left / whole, 1.0) if whole > 0 else 1.0)


def _levels(
    scales: Float64[np.ndarray, " k"],
) -> list[tuple[float, Int64[np.ndarray, " c"]]]:
    """Powers of 2, and the columns whose scales are nearest to them."""
    powers = np.round(np.log2(scales))
    return [(2.0**power, np.flatnonzero(powers == power)) for power in np.unique(powers)]


def _conditioned(
    statistic: Float64[np.ndarray, "d k"],
    cross: Float64[np.ndarray, "d d"],
    noise: Float64[np.ndarray, "d d"],
    variances: Float64[np.ndarray, " d"],
) -> tuple[Float64[np.ndarray, "d k"], Float64[np.ndarray, " d"]]:
    """Mean and variances of θ, given S."""
    factor = cho_factor((cross * variances[None, :]) @ cross.T + noise, lower=True)
    gain = variances[:, None] * cho_solve(factor, cross).T
    left = variances - (gain * (cross * variances[None, :]).T).sum(axis=1)
    return gain @ statistic, np.maximum(left, 0)
