"""Weights that undo a randomizer on average: P·W = I.

For the table P [c, m] of Pr[output | class of labels], a private label o stands for the row W[o]:
its expectation under class y is the y-th unit vector. Among all such W the one of least variance
under uniform labels is taken, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹, D the mean probabilities of the outputs. What
private labels say with these weights is in ``labeldp_learn``.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LARGEST_WEIGHT = 1e6  # beyond it, no number of rows that exists brings the noise down
_RESIDUAL = 1e-6


def least_variance_inverse(table: Floats) -> Floats | None:
    """W [m, c] with P·W = I for P [c, m], of least variance under uniform classes: D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹.

    D has the mean probabilities of the outputs on its diagonal. None if there is no W, or only one
    that is too large to be useful.
    """
    scaled = table / np.maximum(table.mean(axis=0), np.finfo(float).tiny)
    try:
        weights: Floats = np.linalg.solve(scaled @ table.T, scaled).T
    except np.linalg.LinAlgError:
        return None
    residual = np.abs(table @ weights - np.eye(len(table))).max()
    useful = residual <= _RESIDUAL and np.abs(weights).max() <= _LARGEST_WEIGHT
    return weights if useful else None
