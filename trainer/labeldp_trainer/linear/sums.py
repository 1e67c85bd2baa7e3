"""From sums over rows to a linear model: first the signal by empirical Bayes, then the head.

S = H·θ + noise. θ has independent priors of variance c·spectrum^p times the scale of a column of S;
c and p maximise the marginal likelihood of S. All of this is post-processing of S and of features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from labeldp_trainer.config.method import Head
from labeldp_trainer.linear.heads import canonical, penalty, temperature

_SHARES, _POWERS = (-2.5, -0.7), (0.4, 0.8, 1.4)
_MOST_EVALUATIONS = 60
_LARGEST_POWER, _RANGE = 4.0, 20.0


@dataclass(frozen=True)
class Sums:
    """A noisy statistic S = Σ u ⊗ t(y) + noise, and the public sums beside it.

    Rows u = w·(metric·x) of used columns x, each with a public factor w.

    Attributes:
        statistic: [d, k].
        cross: [d, d] Σ u·xᵀ.
        total: [d] Σ u.
        noise: [d, d] covariance of the noise of each of the k columns: the noise added for privacy,
            and the part of the labels that features do not explain.
        spectrum: [d] of the columns, relative.
        metric: [d].
        constant: whether the first column is the 1.
        variance: of a target, before features explain any of it.
        base: [k] the prediction of a target without features, known beforehand.
        scales: [k] the variances of the targets, relative to one another.
        classes: whether the k targets are the entries of one-hot labels.
        used: the columns x of all rows [n, d].
        factors: w of all rows [n].
    """

    statistic: Float64[np.ndarray, "d k"]
    cross: Float64[np.ndarray, "d d"]
    total: Float64[np.ndarray, " d"]
    noise: Float64[np.ndarray, "d d"]
    spectrum: Float64[np.ndarray, " d"]
    metric: Float64[np.ndarray, " d"]
    constant: bool
    variance: float
    base: Float64[np.ndarray, " k"]
    scales: Float64[np.ndarray, " k"]
    classes: bool
    used: Callable[[], Float32[np.ndarray, "n d"]]
    factors: Callable[[], Float32[np.ndarray, " n"]]


@dataclass(frozen=True)
class Posterior:
    """Coefficients, given the statistic.

    Attributes:
        mean: [d, k].
        unexplained: the share that is left of the prior variance, of all columns but the constant.
    """

    mean: Float64[np.ndarray, "d k"]
    unexplained: float


def with_constant(
    spectrum: Float64[np.ndarray, " p"] | None, columns: int
) -> Float64[np.ndarray, " p+1"]:
    """A spectrum relative to its largest value, after a 1 for the constant column."""
    if spectrum is None:
        return np.ones(columns + 1)
    return np.concatenate([[1.0], np.maximum(spectrum / spectrum.max(), 1e-12)])


def posterior(sums: Sums) -> Posterior:
    """The coefficients of targets minus their base, given the statistic, with the likeliest prior.

    The prior variance of the constant is that of a label. The scales of the columns of S are
    rounded to powers of 2.
    """
    statistic = sums.statistic - sums.total[:, None] * sums.base[None, :]
    cross, noise, levels = sums.cross, sums.noise, _levels(sums.scales)
    signal, count = slice(int(sums.constant), None), statistic.shape[1]
    counted = (max(count - 1, 1) if sums.classes else 1) / count  # columns that are independent

    def prior(point: Float64[np.ndarray, " 2"]) -> Float64[np.ndarray, " d"]:
        shape = sums.spectrum ** min(max(point[1], 0.0), _LARGEST_POWER)
        share = math.exp(min(max(point[0], -_RANGE), _RANGE))
        variances = sums.variance * share * shape / max(shape[signal].sum(), 1e-300)
        if sums.constant:
            variances[0] = sums.variance
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


def fitted(sums: Sums, head: Head) -> Float64[np.ndarray, "d k"]:
    """[d, k] weights of the used columns: they give logits, means, or logarithms of means
    (Poisson).

    Deterministic; reads no label.
    """
    found = posterior(sums)
    # what the statistic would be without noise, and with the metric taken out of its rows
    clean = sums.cross @ found.mean + sums.total[:, None] * sums.base[None, :]
    clean = clean / sums.metric[:, None]
    if not sums.classes:
        if head == "poisson":
            strength = penalty(found.unexplained)
            return canonical("poisson", sums.used(), sums.factors(), clean, strength)
        solved = found.mean.copy()
        if sums.constant:
            solved[0] += sums.base
        return solved
    scores = found.mean
    used, factors = sums.used(), sums.factors()
    if head == "softmax":
        scores = canonical("softmax", used, factors, clean, penalty(found.unexplained))
    return scores * temperature(used, scores, factors, float((scores * clean).sum()))


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
