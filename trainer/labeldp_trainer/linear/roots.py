"""Square roots of covariances that rounding may have made indefinite."""

import numpy as np
from jaxtyping import Float64

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
