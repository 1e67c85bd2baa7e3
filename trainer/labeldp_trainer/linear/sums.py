"""From sums over rows to a linear model: the signal by empirical Bayes, then the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.config.one_release import Head
from labeldp_trainer.linear.evidence import Posterior, posterior
from labeldp_trainer.linear.heads import canonical, penalty, temperature


@dataclass(frozen=True)
class Sums:
    """A noisy statistic S = Σ u ⊗ t(y) + noise, and the public sums beside it.

    Rows u = w·(metric·x) of used columns x, each with a public factor w.

    Attributes:
        statistic: [d, k].
        cross: [d, d] Σ u·xᵀ.
        total: [d] Σ u.
        noise: [d, d] covariance of the noise of each of the k columns: what privacy added, and what
            features do not explain of labels.
        spectrum: [d] of the columns, relative.
        metric: [d].
        constant: whether the first column is the 1.
        variance: of a target, without features.
        base: [k] what a target is without features, known beforehand.
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


def signal(sums: Sums) -> Posterior:
    """The coefficients of targets less their base, given the statistic."""
    targets = sums.statistic.shape[1]
    return posterior(
        sums.statistic - sums.total[:, None] * sums.base[None, :],
        sums.cross,
        sums.noise,
        sums.spectrum,
        sums.scales,
        label_variance=sums.variance,
        constant=sums.constant,
        targets=max(targets - 1, 1) if sums.classes else 1,
    )


def fitted(sums: Sums, head: Head) -> Float64[np.ndarray, "d k"]:
    """[d, k] weights of the used columns, to logits, means, or logarithms of means (Poisson).

    Deterministic; no label is needed.
    """
    return _head(sums, head, signal(sums))


def _head(sums: Sums, head: Head, found: Posterior) -> Float64[np.ndarray, "d k"]:
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
