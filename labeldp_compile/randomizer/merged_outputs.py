"""Merge outputs that are hardly ever drawn with a neighbour, so that lookup tables stay small.

A lookup bucket may hold only one segment boundary, so the narrowest segment decides the size of the
tables. Two neighbouring outputs become one at their weighted mean: every row keeps its mean up to
the placement of its window, and by Jensen's inequality the spread only shrinks; what it costs is
that windows can be placed less finely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def merge_rare_outputs(
    values: NDArray[np.float64], weights: NDArray[np.float64], least_share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outputs [m'] and weights [m'] in which every weight is at least ``least_share`` of the sum.

    ``values`` [m] increasing, ``weights`` [m] > 0. The rarest output is merged with its nearest
    neighbour in value until none is too rare.
    """
    v, c = [float(x) for x in values], [float(x) for x in weights]
    least = least_share * sum(c)
    while len(c) > 2:
        rarest = min(range(len(c)), key=c.__getitem__)
        if c[rarest] >= least:
            break
        left = v[rarest] - v[rarest - 1] if rarest > 0 else np.inf
        right = v[rarest + 1] - v[rarest] if rarest < len(v) - 1 else np.inf
        i = rarest - 1 if left <= right else rarest
        total = c[i] + c[i + 1]
        merged = (c[i] * v[i] + c[i + 1] * v[i + 1]) / total
        v[i : i + 2], c[i : i + 2] = [merged], [total]
    return np.array(v), np.array(c)
