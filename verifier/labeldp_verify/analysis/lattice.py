"""The outputs of additive noise by their places on the lattice; they may be too many to list."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import AdditiveRandomizer


def lattice_indices(randomizer: AdditiveRandomizer, numbers: NDArray[Any]) -> NDArray[np.int64]:
    """[n] the exact index of each number among the outputs; −1 if it is not one of them."""
    r = randomizer
    with np.errstate(invalid="ignore"):
        points = np.nan_to_num(np.rint((numbers - r.origin) / r.unit), nan=np.inf)
    same = points * r.unit + r.origin == numbers
    same &= (points >= r.low) & (points <= r.high)
    return np.where(same, np.where(same, points, 0) - r.low, -1).astype(np.int64)
