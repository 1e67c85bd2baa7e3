"""Empirical Bayes: how strong the signal is, out of a noisy statistic whose noise is known.

S = H·θ + noise, θ with independent priors of variance c·spectrum^p. c and p are those of largest
marginal likelihood of S. All of it is post-processing of S and of features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

_START = (0.0, 0.8)
_MOST_EVALUATIONS = 80


@dataclass(frozen=True)
class Posterior:
    """Coefficients, given the statistic.

    Attributes:
        mean: [d, k].
        unexplained: of the prior variance, the share that the posterior still has.
        power: p.
        signal: the sum of prior variances of all columns but the constant.
    """

    mean: Float64[np.ndarray, "d k"]
    unexplained: float
    power: float
    signal: float


def posterior(
    statistic: Float64[np.ndarray, "d k"],
    cross: Float64[np.ndarray, "d d"],
    noise: Float64[np.ndarray, "d d"],
    spectrum: Float64[np.ndarray, " d"],
    *,
    label_variance: float,
    constant: bool,
    targets: int,
) -> Posterior:
    """The posterior of θ with the likeliest prior.

    ``noise`` is the covariance of the noise of each column of S, sampling of labels included;
    ``constant`` says whether the first column is the 1, whose prior variance is that of a label;
    ``targets`` how many of the k columns are independent.
    """
    scale = label_variance / len(spectrum)

    def prior(point: Float64[np.ndarray, " 2"]) -> Float64[np.ndarray, " d"]:
        power = min(max(point[1], 0.0), 4.0)
        variances = scale * math.exp(min(max(point[0], -30.0), 10.0)) * spectrum**power
        if constant:
            variances[0] = label_variance
        return np.asarray(np.maximum(variances, 1e-300))

    def surprise(point: Float64[np.ndarray, " 2"]) -> float:
        factor = cho_factor((cross * prior(point)[None, :]) @ cross.T + noise, lower=True)
        fit = float((statistic * cho_solve(factor, statistic)).sum())
        logs = float(np.log(np.diag(factor[0])).sum())
        return float(0.5 * fit * targets / statistic.shape[1] + targets * logs)

    found = minimize(
        surprise,
        np.array(_START),
        method="Nelder-Mead",
        options={"maxfev": _MOST_EVALUATIONS, "xatol": 0.01, "fatol": 0.1},
    ).x
    variances = prior(found)
    factor = cho_factor((cross * variances[None, :]) @ cross.T + noise, lower=True)
    gain = variances[:, None] * cho_solve(factor, cross).T
    left = variances - (gain * (cross * variances[None, :]).T).sum(axis=1)
    signal = float(variances[int(constant) :].sum())
    return Posterior(
        gain @ statistic,
        min(float(left.sum() / variances.sum()), 1.0),
        float(min(max(found[1], 0.0), 4.0)),
        signal,
    )
