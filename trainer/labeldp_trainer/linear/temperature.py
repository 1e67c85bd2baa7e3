"""How sure a softmax model is of its classes: one factor of its scores."""

import math

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import brentq
from scipy.special import softmax

_REACH, _POINTS = 8.0, 2001  # deviations on either side, and points, of an integral
_UNSURE = 3e-3
"""An agreement is kept this far below the largest score, as a share of the way to the mean."""


def temperature(
    scores: Float32[np.ndarray, "n k"],
    offset: Float64[np.ndarray, " k"],
    factors: Float32[np.ndarray, " n"],
    agreement: float,
) -> float:
    """The β for logits β·s + offset that maximises β·agreement − Σ w·log Σ exp(β·s + offset).

    ``scores`` are s = x·W; ``agreement`` is ⟨W, S⟩ = Σ w·s[y]; β is between 10⁻² and 10⁴. If
    classes are far apart, noise can raise the agreement to that of a model that is certain of every
    class, or above, so it is capped.
    """
    most, mean = (
        float((factors * each).sum()) for each in (scores.max(axis=1), scores.mean(axis=1))
    )
    agreement = min(agreement, most - _UNSURE * (most - mean))

    def slope(log_beta: float) -> float:
        chances = softmax(math.exp(log_beta) * scores.astype(np.float64) + offset, axis=1)
        return agreement - float((factors * (chances * scores).sum(axis=1)).sum())

    low, high = math.log(1e-2), math.log(1e4)
    if slope(low) <= 0:
        return math.exp(low)
    if slope(high) >= 0:
        return math.exp(high)
    return math.exp(brentq(slope, low, high, xtol=1e-6))


def likely(agreement: float, deviation: float, most: float) -> float:
    """The agreement that is expected of a model, given an estimate of it and its deviation.

    Beforehand, with chance ½ the model knows nothing, and agrees by 0; otherwise agreements are as
    likely as they are large, up to ``most``, that of a model that is certain of every class. The
    loss is linear in the agreement, so its expectation decides how sure a model should be.
    """
    low, high = max(agreement - _REACH * deviation, 0.0), min(agreement + _REACH * deviation, most)
    if low >= high:
        return min(max(agreement, 0.0), most)
    points = np.linspace(low, high, _POINTS)
    logs = -np.square((points - agreement) / deviation) / 2
    nothing = -((agreement / deviation) ** 2) / 2
    top = max(float(logs.max()), nothing)
    chances = np.exp(logs - top) * 2 * points / most**2 * (high - low) / _POINTS
    return float((chances @ points) / (chances.sum() + math.exp(nothing - top)))
