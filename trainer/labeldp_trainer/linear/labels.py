"""The sums of labels that are private already, or need no privacy: every row counts alike.

An unbiased or debiased private label t̂ has the expectation of the true one, so Σ x ⊗ t̂ is the
statistic of the true labels plus noise, whose variance the labels themselves show.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.config.one_release import Head
from labeldp_trainer.linear.evidence import with_constant
from labeldp_trainer.linear.sums import Sums, fitted, signal

_CHUNK = 8192
_NOISELESS = 1e-3  # of the variance of targets


def fitted_labels(
    vectors: Float32[np.ndarray, "n p"],
    spectrum: Float64[np.ndarray, " p"] | None,
    targets: Float64[np.ndarray, "n k"],
    head: Head,
    *,
    classes: bool,
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns and biases: logits, numbers, or logarithms of means."""
    n, p = vectors.shape
    k = targets.shape[1]
    gram, total = np.zeros((p + 1, p + 1)), np.zeros(p + 1)
    statistic = np.zeros((p + 1, k))
    for start in range(0, n, _CHUNK):
        x = _with_one(vectors[start : start + _CHUNK])
        gram += x.T @ x
        total += x.sum(axis=0, dtype=np.float64)
        statistic += x.T.astype(np.float64) @ targets[start : start + _CHUNK]
    base = np.full(k, 1 / k) if classes else targets.mean(axis=0)
    variance = float(targets.var(axis=0).mean())
    sums = Sums(
        statistic=statistic,
        cross=gram,
        total=total,
        noise=variance * gram,
        spectrum=with_constant(spectrum, p),
        metric=np.ones(p + 1),
        constant=True,
        variance=variance,
        base=base,
        classes=classes,
        used=lambda: _with_one(vectors),
        factors=lambda: np.ones(n, np.float32),
    )
    residual = _residual(signal(sums).mean, vectors, targets - base[None, :])
    sums = dataclasses.replace(sums, noise=max(residual, _NOISELESS * variance) * gram)
    solved = fitted(sums, head)
    return solved[1:].astype(np.float32), solved[0].astype(np.float32)


def _residual(
    coefficients: Float64[np.ndarray, "d k"],
    vectors: Float32[np.ndarray, "n p"],
    targets: Float64[np.ndarray, "n k"],
) -> float:
    """The mean square of what a fit leaves of targets."""
    left = 0.0
    for start in range(0, len(vectors), _CHUNK):
        rows = slice(start, start + _CHUNK)
        left += float(np.square(targets[rows] - _with_one(vectors[rows]) @ coefficients).sum())
    return left / targets.size


def _with_one(vectors: Float32[np.ndarray, "b p"]) -> Float32[np.ndarray, "b p+1"]:
    return np.concatenate([np.ones((len(vectors), 1), np.float32), vectors], axis=1)
