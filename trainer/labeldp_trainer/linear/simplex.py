"""The probabilities that are nearest to predictions of classes, which may be below 0 or above 1.

The algorithm of Wang and Carreira-Perpiñán 2013, for many rows at a time.
"""

import numpy as np
from jaxtyping import Bool, Float32


def nearest_probabilities(predicted: Float32[np.ndarray, "n k"]) -> Float32[np.ndarray, "n k"]:
    """Of every row, the nearest point of the unit simplex."""
    descending = -np.sort(-predicted, axis=1)
    ranks = np.arange(1, predicted.shape[1] + 1, dtype=np.float32)
    shifts = (1 - np.cumsum(descending, axis=1, dtype=np.float32)) / ranks
    active = (descending + shifts > 0).sum(axis=1)
    shift = np.take_along_axis(shifts, np.maximum(active - 1, 0)[:, None], axis=1)
    return np.maximum(predicted + shift, np.float32(0))


def probabilities_moved(
    predicted: Float32[np.ndarray, "n k"], change: Float32[np.ndarray, "n k"]
) -> Float32[np.ndarray, "n k"]:
    """How these points move, to first order, if predictions do: entries above 0 keep their sum."""
    positive: Bool[np.ndarray, "n k"] = nearest_probabilities(predicted) > 0
    mean = (change * positive).sum(axis=1) / positive.sum(axis=1)
    return np.where(positive, change - mean[:, None], np.float32(0)).astype(np.float32)
