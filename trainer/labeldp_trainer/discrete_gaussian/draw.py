"""Discrete Gaussian noise of OpenDP on an integer statistic."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

_EXACT = 40  # bits: the scale is a float64 that is the integer itself


def with_float(sigma: int) -> int:
    """The least integer from σ upwards that a float64 holds exactly, to 40 bits."""
    shift = max(sigma.bit_length() - _EXACT, 0)
    return -(-sigma >> shift) << shift


def noisy(statistic: Int64[np.ndarray, "d k"], sigma: int) -> Int64[np.ndarray, "d k"]:
    """The statistic plus independent discrete Gaussian noise of scale σ, from secure randomness."""
    # Imported where it is used: whoever verifies or fits a release needs no OpenDP.
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_gaussian  # noqa: PLC0415
    from opendp.metrics import l2_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    if int(float(sigma)) != sigma:
        raise ValueError("σ is no float64")
    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="i64")
    drawn = make_gaussian(*space, scale=float(sigma))([int(value) for value in statistic.ravel()])
    return np.array(drawn, np.int64).reshape(statistic.shape)
