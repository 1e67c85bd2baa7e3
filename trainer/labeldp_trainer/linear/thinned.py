"""How closely a softmax model should follow a noisy statistic: found from the statistic alone.

Noise of a known covariance N is split: S + a·z and S − z/a, with z drawn from N(0, N), are
independent given what S is without noise (Oliveira, Lei and Tibshirani 2021, Unbiased risk
estimation in the normal means problem via coupled bootstrap techniques). Models are fitted to the
first and judged by the second. N holds the noise of privacy and of labels, so that no model is
rewarded for following either. All of it is post-processing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from scipy.linalg import cho_factor, cho_solve

from labeldp_trainer.linear.heads import best_scale, canonical
from labeldp_trainer.linear.roots import stable_root

RIDGE = np.inf
"""Instead of a penalty: the posterior mean itself."""
_A, _DRAWS, _OF_PENALTIES, _SEED = 0.5, 4, 1, 20_110_301
_SURE = 2.0  # standard errors by which a softmax model must be better
_ROWS = 10_000  # on which models are fitted and judged
_MOST_OUTPUTS = 1 << 21
_TRUST = 0.01  # relative error that the expected agreement may have


class HeadChoice(NamedTuple):
    """A penalty, or RIDGE, and the scale β of the logits."""

    penalty: float
    scale: float


class Judged(NamedTuple):
    """What models are fitted to.

    Attributes:
        statistic: [d, k] less what the base explains.
        offset: [d, k] what the base explains.
        cross, noise: [d, d].
        variances: [d] of the coefficients' prior.
        metric: [d].
        used: [n, d] columns of rows; factors: [n] of rows.
    """

    statistic: Float64[np.ndarray, "d k"]
    offset: Float64[np.ndarray, "d k"]
    cross: Float64[np.ndarray, "d d"]
    noise: Float64[np.ndarray, "d d"]
    variances: Float64[np.ndarray, " d"]
    metric: Float64[np.ndarray, " d"]
    used: Float32[np.ndarray, "n d"]
    factors: Float32[np.ndarray, " n"]


def chosen(given: Judged, penalty: float | None) -> HeadChoice:
    """RIDGE, unless this penalty is better by more than noise can make it; None: RIDGE."""
    rows = max(min(_ROWS, _MOST_OUTPUTS // given.statistic.shape[1]), 1)
    step = -(-len(given.used) // rows)
    used = given.used[::step]
    total = float(given.factors.sum(dtype=np.float64))
    factors = given.factors[::step]
    factors = factors * np.float32(total / factors.sum(dtype=np.float64))
    root, random = stable_root(given.noise), np.random.default_rng(_SEED)
    whole = (given.cross * given.variances[None, :]) @ given.cross.T
    factor = cho_factor(whole + (1 + _A**2) * given.noise, lower=True)
    expected = _expectation(given, whole)
    scales, better, certain = [], [], True
    for draw in range(_DRAWS):
        drawn = root @ random.standard_normal(given.statistic.shape)
        drawn -= drawn.mean(axis=1, keepdims=True)  # sums over classes are known
        seen, held = given.statistic + _A * drawn, given.statistic - drawn / _A
        mean = given.variances[:, None] * (given.cross.T @ cho_solve(factor, seen))
        scale, _ = best_scale(used, mean, factors, _agreement(given, mean, held, expected))
        scales.append(scale)
        if penalty is None or draw >= _OF_PENALTIES:
            continue
        clean = (given.cross @ mean + given.offset) / given.metric[:, None]
        w = canonical("softmax", used, factors, clean, penalty)
        fits = [best_scale(used, each, factors, _of(given, each, held)) for each in (mean, w)]
        change = (fits[1][0] * w - fits[0][0] * mean) / given.metric[:, None]
        noise = (1 + 1 / _A**2) * float((change * (given.noise @ change)).sum())
        better.append(fits[1][0])
        certain &= total * (fits[1][1] - fits[0][1]) > _SURE * noise**0.5
    if penalty is not None and certain:
        return HeadChoice(penalty, float(np.exp(np.mean(np.log(better)))))
    return HeadChoice(RIDGE, float(np.exp(np.mean(np.log(scales)))))


def _expectation(given: Judged, whole: Float64[np.ndarray, "d d"]) -> Float64[np.ndarray, "d k"]:
    """The statistic that is expected without noise, given all of it."""
    gain = cho_solve(cho_factor(whole + given.noise, lower=True), given.statistic)
    expected: Float64[np.ndarray, "d k"] = whole @ gain
    return expected


def _of(given: Judged, w: Float64[np.ndarray, "d k"], part: Float64[np.ndarray, "d k"]) -> float:
    """⟨W, S⟩ of a part of the statistic."""
    return float((w / given.metric[:, None] * (given.offset + part)).sum())


def _agreement(
    given: Judged,
    w: Float64[np.ndarray, "d k"],
    held: Float64[np.ndarray, "d k"],
    expected: Float64[np.ndarray, "d k"],
) -> float:
    """⟨W, S⟩ without noise: by the held part, unless its own noise is larger than the error that
    the expectation may have."""
    scaled = w / given.metric[:, None]
    by_held, by_all = (_of(given, w, each) for each in (held, expected))
    own = (1 + 1 / _A**2) * float((scaled * (given.noise @ scaled)).sum())
    other = (_TRUST * by_all) ** 2
    share = other / max(other + own, 1e-300)
    return share * by_held + (1 - share) * by_all
