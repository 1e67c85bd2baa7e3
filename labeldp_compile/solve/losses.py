"""Losses of outputs for labels, in floats."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from labeldp_verify.analysis import Loss
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Divergence = Callable[[Floats, Floats], Floats]
BinLoss = Literal["squared", "absolute", "poisson"]
DistanceLoss = Literal["squared", "absolute"]


def loss_of(loss: Loss, outputs: Floats, labels: Floats | float) -> Floats:
    """ℓ(v, y) of outputs v and labels y that broadcast.

    It is ½(v − y)², |v − y|, 1[v ≠ y] or v − y·log v, where 0·log 0 = 0.
    """
    if loss == "poisson":
        with np.errstate(divide="ignore", invalid="ignore"):
            return outputs - np.where(labels > 0, labels * np.log(outputs), 0.0)
    distance = np.abs(outputs - labels)
    if loss == "squared":
        return np.asarray(0.5 * distance**2)
    return distance if loss == "absolute" else np.asarray(distance > 0, np.float64)


def squared_divergence(label: Floats, mean: Floats) -> Floats:
    """½(y − v)², broadcast."""
    gap = label - mean
    return np.asarray(0.5 * gap * gap)


def poisson_divergence(label: Floats, mean: Floats) -> Floats:
    """y·log(y/v) − y + v ≥ 0, accurate relative to itself also where y is close to v.

    ``label`` y ≥ 0 and ``mean`` v ≥ 0 are broadcast. It is the Poisson loss above its minimum.
    """
    gap = label - mean
    total = label + mean
    z = gap / np.where(total > 0, total, 1.0)
    # log(y/v) = 2·artanh(z): the first terms are cancelled by hand, not in floating point.
    square = z * z
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))
    near = gap * z * (1.0 + (1.0 + z) * z * series)
    tiny = np.finfo(np.float64).tiny
    with np.errstate(divide="ignore", invalid="ignore"):  # tiny over a very large mean is 0
        logs = label * np.log(np.maximum(label, tiny) / np.maximum(mean, tiny))
    far = np.where(label > 0, logs, 0.0) - gap
    return np.where(np.abs(z) < 0.02, near, far)
