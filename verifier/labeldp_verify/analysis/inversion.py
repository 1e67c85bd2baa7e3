"""Weights that undo a randomizer on average: P·W = I.

For the table P [c, m] of Pr[output | class of labels], a private label o stands for the row W[o]:
its expectation under class y is the y-th unit vector. Among all such W the one of least variance
under uniform labels is taken, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹, D the mean probabilities of the outputs.

Numbers have values v(o) instead, whose expectation under label y is y. Estimated shares that are no
distribution are projected to the nearest one, or replaced by the likeliest one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LARGEST_WEIGHT = 1e6  # beyond it, no number of rows that exists brings the noise down
_RESIDUAL = 1e-6
_STEPS = 1000


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


def debiased_values(
    table: Floats, labels: Floats, shares: Floats, variance_weight: float
) -> Floats:
    """v [m] of the outputs of P [k, m], for labels [k] with these shares [k].

    Minimizes Σ_y p_y·(Σ_o P[y, o]·v(o) − y)² + λ·Σ_y p_y·Var[v | y] for λ = ``variance_weight`` in
    (0, 1]. λ = 1 gives the mean of the labels behind an output. As λ goes to 0, v goes to the
    values of least bias, and among them to those of least variance. An output that no label has
    gets 0.
    """
    likely = shares @ table
    scale = np.sqrt(np.maximum(likely, 1e-300))
    # in u = √q·v the penalty is a multiple of the identity, however rare an output is
    scaled = table * np.sqrt(shares)[:, None] / scale[None, :]
    goal = np.sqrt(shares) * labels
    # ((1 − λ)·AᵀA + λ)⁻¹·Aᵀ·goal, for an A of norm 1 at most, singular or not
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    values = np.minimum(values, 1.0)
    stretched = (1 - variance_weight) * values**2 + variance_weight
    solved = right.T @ (values * (left.T @ goal) / stretched)
    return np.asarray(np.where(likely > 1e-15, solved / scale, 0.0))


def likeliest_shares(table: Floats, counts: Any, start: Floats) -> Floats:
    """[k] shares of the labels under which the outputs [m] that were seen are likeliest, about.

    ``counts`` may be [n, m], and the result is [n, k] then. Expectation and maximization from
    ``start`` [k]: the likelihood never falls, and labels with the same outputs keep their
    proportion.
    """
    seen = np.asarray(counts, np.float64)
    seen = seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1)
    shares = np.broadcast_to(start, (*seen.shape[:-1], len(start)))
    for _ in range(_STEPS):
        shares = shares * ((seen / np.maximum(shares @ table, 1e-300)) @ table.T)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def project_to_simplex(shares: Floats) -> Floats:
    """The Euclidean projection [..., c] of shares [..., c]: max(share − t, 0), t as it fits."""
    falling = -np.sort(-shares, axis=-1)
    levels = (falling.cumsum(axis=-1) - 1.0) / np.arange(1, shares.shape[-1] + 1)
    kept = (falling > levels).cumsum(axis=-1).argmax(axis=-1)[..., None]
    return np.maximum(shares - np.take_along_axis(levels, kept, axis=-1), 0.0)
