"""The histogram next to an unbiased one: shares that are not negative and sum to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def project_to_simplex(shares: Floats) -> Floats:
    """The Euclidean projection [c] of shares [c]: max(share − t, 0) for the t that fits."""
    falling = np.sort(shares)[::-1]
    levels = (falling.cumsum() - 1.0) / np.arange(1, len(shares) + 1)
    kept = int(np.flatnonzero(falling > levels)[-1])
    result: Floats = np.maximum(shares - levels[kept], 0.0)
    return result
