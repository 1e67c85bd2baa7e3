"""True labels in lattice steps."""

from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from labeldp_trainer.data.labels import label_numbers
from labeldp_trainer.one_release.lattice import STEPS


def label_steps(
    values: Any, low: float, high: float, default: float | None
) -> Int64[np.ndarray, " n"]:
    """The numbers of n labels (``label_numbers``) in steps from the middle: −STEPS … STEPS."""
    inside = label_numbers(values, low, high, default)
    with np.errstate(all="ignore"):
        share = (inside - low) / (high - low) * 2 - 1
    return in_steps(share)


def in_steps(shares: Float64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """Numbers in [−1, 1] in steps; what lies beyond becomes an end."""
    return np.rint(np.clip(shares, -1.0, 1.0) * STEPS).astype(np.int64)
