"""Numbers in the place of private ones whose mean under a label is that label, if that can be.

An output o of an artifact with Pr[output | label] = P stands for v(o). With the shares p of the
labels, v minimises Σ_y p_y·(Σ_o P[y, o]·v(o) − y)² + λ·Σ_y p_y·Var[v | y]: λ = 1 gives the mean of
the labels behind an output, which draws every prediction to the middle; a fit to sums over n rows
averages variance out and keeps bias, so that λ is of the order of 1/n. Labels with the same outputs
stand for their mean. p is the likeliest one, given the private labels; what these leave open is as
in the artifact's prior. All of it post-processes private labels. Where each public group has a
table of its own, this is done for the rows of each table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from labeldp_verify.forms import Domain

from labeldp_trainer.methods.outputs import MOST_ENTRIES, TableRows


class DebiasedNumbers(NamedTuple):
    """Numbers for private ones.

    Attributes:
        values: [n].
        bias: √(Σ p_y·(E[v | y] − y)²) over the standard deviation of the labels, in the mean of all
            rows: what no choice of v takes away.
    """

    values: Float64[np.ndarray, " n"]
    bias: float


def debiased_numbers(domain: Domain, parts: Sequence[TableRows]) -> DebiasedNumbers | None:
    """The numbers for private labels [n] of a domain, or None if a table has too many outputs."""
    if any(domain.size * part.table.randomizer.outputs > MOST_ENTRIES for part in parts):
        return None
    n = sum(len(part.rows) for part in parts)
    labels, found = np.array(list(domain.listed), np.float64), np.zeros(n)
    everywhere, squares = np.zeros(domain.size), 0.0
    for part in parts:
        shares, count = part.shares(), len(part.rows)
        values = debiased_values(part.matrix, labels, shares, 1 / count)
        found[part.rows] = values[part.codes]
        everywhere += count * shares
        squares += count * float(shares @ (part.matrix @ values - labels) ** 2)
    shares = everywhere / n
    spread = float(shares @ (labels - shares @ labels) ** 2)
    return DebiasedNumbers(found, float(np.sqrt(squares / max(n * spread, 1e-300))))


def debiased_values(
    matrix: Float64[np.ndarray, "k m"],
    labels: Float64[np.ndarray, " k"],
    shares: Float64[np.ndarray, " k"],
    variance_weight: float,
) -> Float64[np.ndarray, " m"]:
    """v [m] as above, for λ = ``variance_weight`` in (0, 1]; 0 for outputs that no label has."""
    likely = shares @ matrix
    scale = np.sqrt(np.maximum(likely, 1e-300))
    # in u = √q·v the penalty is a multiple of the identity, however rare an output is
    scaled = matrix * np.sqrt(shares)[:, None] / scale[None, :]
    goal = np.sqrt(shares) * labels
    # (AᵀA + c)⁻¹Aᵀ = Aᵀ(AAᵀ + c)⁻¹: noise may have many more outputs than there are labels
    if len(labels) <= matrix.shape[1]:
        solved = scaled.T @ _ridge(scaled @ scaled.T, goal, variance_weight)
    else:
        solved = _ridge(scaled.T @ scaled, scaled.T @ goal, variance_weight)
    return np.asarray(np.where(likely > 1e-15, solved / scale, 0.0))


def _ridge(
    gram: Float64[np.ndarray, "s s"], goal: Float64[np.ndarray, " s"], weight: float
) -> Float64[np.ndarray, " s"]:
    """((1 − λ)·G + λ)⁻¹·goal, for a G between 0 and the identity, singular or not."""
    values, directions = np.linalg.eigh(gram)
    stretched = (1 - weight) * np.clip(values, 0.0, 1.0) + weight
    return np.asarray(directions @ ((directions.T @ goal) / stretched))
