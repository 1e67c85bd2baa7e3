"""Sums over rows, and the signal in them by empirical Bayes.

S = H·θ + noise. θ has independent priors of variance c·spectrum^p times the scale of a column of S;
c and p of each group of columns, and the share of labels that no column explains, maximise the
marginal likelihood of S, times priors of p and the share. All of this is post-processing of S and
of features.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from scipy.linalg import blas, cho_solve, cholesky, lapack, solve_triangular
from scipy.optimize import minimize

from labeldp_trainer.data.labels import Coded

_JITTERS = (0.0, 1e-8, 1e-6, 1e-4)  # of the mean of the diagonal


def stable_root(matrix: Float64[np.ndarray, "d d"]) -> Float64[np.ndarray, "d d"]:
    """Lower Cholesky factor of a covariance that rounding may have made indefinite.

    Without noise, sums that two stages ask for make it singular.
    """
    size = float(np.trace(matrix)) / len(matrix)
    for jitter in _JITTERS:
        try:
            return np.linalg.cholesky(matrix + jitter * size * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(matrix)
    least = _JITTERS[1] * max(float(values[-1]), 1e-300)
    scaled = vectors * np.sqrt(np.maximum(values, least))[None, :]
    return np.asarray(np.linalg.qr(scaled.T)[1].T)


_SHARES, _POWERS = (-2.5, -0.7), (0.4, 0.8, 1.4)
_MOST_STEPS = 30
_LARGEST_POWER, _RANGE = 4.0, 12.0
_DOUBT = 0.7  # deviation of its logarithm
_EXPECTED_POWER, _POWER_DOUBT = 1.0, 0.5  # without noise, five tables had 0.7 to 1.3
_JITTER = 1e-6  # of the noise of an entry: more than the rounding of float32 sums


@dataclass(frozen=True)
class Sums:
    """A noisy statistic S = Σ u ⊗ t(y) + noise, and the public sums beside it.

    Rows u = w·(metric·x) of used columns x, each with a public factor w.

    Attributes:
        statistic: [d, k].
        cross: [d, d] Σ u·xᵀ.
        total: [d] Σ u.
        noise: [d, d] covariance of the noise added for privacy, of each of the k columns.
        residual: [d, d] that of a label that features do not explain.
        unexplained: the share of labels that features are expected not to explain.
        between: what that share is at least and at most.
        every: of how many rows there is one in ``used``.
        spectrum: [d] of the columns, relative.
        groups: [d] numbers of the representations that columns are from; -1 of the constant.
        metric: [d].
        constant: whether the first column is the 1.
        variance: of a target, before features explain any of it.
        base: [k] the prediction of a target without features, known beforehand.
        scales: [k] the variances of the targets, relative to one another.
        classes: whether the k targets are the entries of one-hot labels.
        used: the columns x [n, d] of all rows, or of a sample.
        factors: w [n] of these rows, so large that their sum is about that of all.
        targets: of all rows, if they may be looked at.
    """

    statistic: Float64[np.ndarray, "d k"]
    cross: Float64[np.ndarray, "d d"]
    total: Float64[np.ndarray, " d"]
    noise: Float64[np.ndarray, "d d"]
    residual: Float64[np.ndarray, "d d"]
    unexplained: float
    spectrum: Float64[np.ndarray, " d"]
    groups: Int64[np.ndarray, " d"]
    metric: Float64[np.ndarray, " d"]
    constant: bool
    variance: float
    base: Float64[np.ndarray, " k"]
    scales: Float64[np.ndarray, " k"]
    classes: bool
    used: Callable[[], Float32[np.ndarray, "n d"]]
    factors: Callable[[], Float32[np.ndarray, " n"]]
    targets: Coded | None = None
    between: tuple[float, float] = (1e-3, 2.0)
    every: float = 1.0


@dataclass(frozen=True)
class Posterior:
    """Coefficients, given the statistic.

    Attributes:
        mean: [d, k].
        noise: [d, d] covariance of all noise of each column of the statistic.
        gains: columns of the statistic, and the [d, d] matrix from them to their means.
    """

    mean: Float64[np.ndarray, "d k"]
    noise: Float64[np.ndarray, "d d"]
    gains: list[tuple[Int64[np.ndarray, " c"], Float64[np.ndarray, "d d"]]]

    def response(self, change: Float64[np.ndarray, "d k"]) -> Float64[np.ndarray, "d k"]:
        """By how much the mean moves if the statistic moves by this, with the same prior."""
        found = np.empty_like(change)
        for columns, gain in self.gains:
            found[:, columns] = gain @ change[:, columns]
        return found


def with_constant(
    spectrum: Float64[np.ndarray, " p"] | None, columns: int
) -> Float64[np.ndarray, " p+1"]:
    """A spectrum relative to its largest value, after a 1 for the constant column."""
    if spectrum is None:
        return np.ones(columns + 1)
    return np.concatenate([[1.0], np.maximum(spectrum / spectrum.max(), 1e-12)])


def of_groups(groups: Int32[np.ndarray, " p"] | None, columns: int) -> Int64[np.ndarray, " p+1"]:
    """The group of each column, after that of the constant, which has none: -1."""
    own = np.zeros(columns, np.int64) if groups is None else groups.astype(np.int64)
    return np.concatenate([[-1], own])


def posterior(sums: Sums) -> Posterior:
    """The coefficients of targets minus their base, given the statistic, with the likeliest prior.

    The prior variance of the constant is that of a label. The scales of the columns of S are
    rounded to powers of 2.
    """
    statistic = sums.statistic - sums.total[:, None] * sums.base[None, :]
    variances, unexplained = _likeliest(sums, statistic)
    noise = sums.noise + unexplained * sums.residual
    mean = np.empty_like(statistic)
    gains = []
    for scale, columns in _levels(sums.scales):
        gain = _gain(sums.cross, noise, scale * variances)
        mean[:, columns] = gain @ statistic[:, columns]
        gains.append((columns, gain))
    return Posterior(mean, noise, gains)


def _likeliest(
    sums: Sums, statistic: Float64[np.ndarray, "d k"]
) -> tuple[Float64[np.ndarray, " d"], float]:
    """[d] prior variances c·spectrum^p, with c and p of each group, and the unexplained share: of
    most marginal likelihood.

    The share and the powers have priors of their own around what is expected of them: noise for
    privacy may hide them. Where the signal is weak, as that of a rare class, the likeliest power
    alone was often the largest one: a prior that knows only the first direction.
    """
    count = statistic.shape[1]
    counted = (max(count - 1, 1) if sums.classes else 1) / count  # columns that are independent
    groups = [np.flatnonzero(sums.groups == group) for group in np.unique(sums.groups)]
    groups = [own for own in groups if sums.groups[own[0]] >= 0]
    logs = np.log(np.maximum(sums.spectrum, 1e-300))
    cross, levels = np.asfortranarray(sums.cross), _levels(sums.scales)
    expected = math.log(sums.unexplained)
    jitter = _JITTER * np.diag(sums.noise + sums.residual)

    def prior(point: Float64[np.ndarray, " g"]) -> Float64[np.ndarray, " d"]:
        variances = np.full(len(sums.spectrum), sums.variance)
        for own, (share, power) in zip(groups, point[1:].reshape(-1, 2), strict=True):
            shape = np.exp(power * logs[own])
            variances[own] *= math.exp(share) * shape / max(shape.sum(), 1e-300)
        return np.asarray(np.maximum(variances, 1e-300))

    def surprise(point: Float64[np.ndarray, " g"]) -> tuple[float, Float64[np.ndarray, " g"]]:
        """Minus the logarithm of the likelihood and of the prior, and its slope."""
        variances, unexplained = prior(point), math.exp(point[0])
        noise = sums.noise + unexplained * sums.residual
        noise[np.diag_indices_from(noise)] += jitter
        total, slopes, of_noise = 0.0, np.zeros(len(variances)), 0.0
        for scale, columns in levels:
            scaled = cross * np.sqrt(scale * variances)[None, :]
            whole = blas.dsyrk(1.0, scaled, beta=1.0, c=noise.T, lower=True)
            factor = _lower(whole)
            half = solve_triangular(factor, statistic[:, columns], lower=True, check_finite=False)
            spread = solve_triangular(factor, scaled, lower=True, check_finite=False)
            gain = solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
            inverse = lapack.dpotri(factor, lower=True)[0]
            total += 0.5 * float(np.square(half).sum())
            total += len(columns) * float(np.log(np.diag(factor)).sum())
            fit, size = np.square(spread.T @ half).sum(axis=1), np.square(spread).sum(axis=0)
            slopes += 0.5 * (len(columns) * size - fit)  # of logarithms of variances
            lower = np.tril(inverse)
            trace = 2 * float((lower * sums.residual).sum()) - float(
                np.diag(inverse) @ np.diag(sums.residual)
            )
            of_noise += len(columns) * trace - float((gain * (sums.residual @ gain)).sum())
        away = (point[0] - expected) / _DOUBT
        unlikely = away**2 / 2
        slope = [counted * 0.5 * unexplained * of_noise + away / _DOUBT]
        for own, power in zip(groups, point[2::2], strict=True):
            off = (power - _EXPECTED_POWER) / _POWER_DOUBT
            unlikely += off**2 / 2
            shape = np.exp(power * logs[own])
            mean = float(shape @ logs[own]) / max(float(shape.sum()), 1e-300)
            slope += [
                counted * float(slopes[own].sum()),
                counted * float(slopes[own] @ (logs[own] - mean)) + off / _POWER_DOUBT,
            ]
        return counted * total + unlikely, np.array(slope)

    even = math.log(max(len(groups), 1))
    starts = [
        np.array([expected, *[share - even, power] * len(groups)])
        for share in _SHARES
        for power in _POWERS
    ]
    start = min(starts, key=lambda point: surprise(point)[0])
    of_group = [(-_RANGE, _RANGE), (0.0, _LARGEST_POWER)]
    bounds = [(math.log(sums.between[0]), math.log(sums.between[1])), *of_group * len(groups)]
    options = {"maxiter": _MOST_STEPS, "ftol": 1e-8}
    found = minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return prior(found), math.exp(found[0])


def _lower(whole: Float64[np.ndarray, "d d"]) -> Float64[np.ndarray, "d d"]:
    """Cholesky factor. With fewer rows than columns, rounding can make the matrix indefinite."""
    try:
        return np.asfortranarray(cholesky(whole, lower=True, check_finite=False))
    except np.linalg.LinAlgError:
        return np.asfortranarray(stable_root(whole))


def _levels(scales: Float64[np.ndarray, " k"]) -> list[tuple[float, Int64[np.ndarray, " c"]]]:
    """Powers of 2, and the columns whose scales are nearest to them."""
    powers = np.round(np.log2(scales))
    return [(2.0**power, np.flatnonzero(powers == power)) for power in np.unique(powers)]


def _gain(
    cross: Float64[np.ndarray, "d d"],
    noise: Float64[np.ndarray, "d d"],
    variances: Float64[np.ndarray, " d"],
) -> Float64[np.ndarray, "d d"]:
    """The matrix from S to the mean of θ."""
    factor = _lower((cross * variances[None, :]) @ cross.T + noise)
    return variances[:, None] * cho_solve((factor, True), cross).T
