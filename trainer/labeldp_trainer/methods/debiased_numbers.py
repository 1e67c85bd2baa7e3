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

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from labeldp_verify.artifact import Artifact, Table

from labeldp_trainer.data.labels import places, taken
from labeldp_trainer.methods.debias import matrix_of
from labeldp_trainer.methods.row_tables import rows_by_table

_MOST_ENTRIES = 1 << 24
_STEPS = 1000
_FROM_UNIFORM = 0.01  # a share that starts at 0 stays there


@dataclass(frozen=True)
class DebiasedNumbers:
    """Numbers for private ones.

    Attributes:
        values: [n].
        bias: √(Σ p_y·(E[v | y] − y)²) over the standard deviation of the labels, in the mean of all
            rows: what no choice of v takes away.
    """

    values: Float64[np.ndarray, " n"]
    bias: float


def debiased_numbers(
    decoded: Artifact, table: Int64[np.ndarray, " n"] | None, private: Any
) -> DebiasedNumbers | None:
    """The numbers for private labels [n] of an artifact, or None if it has too many outputs.

    ``table`` [n] is the number of each row's table, None for an artifact without groups. Raises
    ValueError if the artifact never outputs one of the labels.
    """
    domain, found = decoded.label, np.zeros(len(private))
    labels = np.array(list(domain.listed), np.float64)
    everywhere, squares = np.zeros(domain.size), 0.0
    for one, rows in rows_by_table(decoded, table, len(private)):
        if domain.size * one.randomizer.outputs > _MOST_ENTRIES:
            return None
        matrix, outputs = matrix_of(one)
        seen = places(taken(private, rows), outputs)
        if (seen < 0).any():
            raise ValueError("holds labels that the artifact never outputs")
        shares = likeliest_shares(
            matrix, np.bincount(seen, minlength=matrix.shape[1]), start_of(one)
        )
        values = debiased_values(matrix, labels, shares, 1 / len(rows))
        found[rows] = values[seen]
        everywhere += len(rows) * shares
        squares += len(rows) * float(shares @ (matrix @ values - labels) ** 2)
    shares = everywhere / max(len(private), 1)
    spread = float(shares @ (labels - shares @ labels) ** 2)
    return DebiasedNumbers(found, float(np.sqrt(squares / max(len(private) * spread, 1e-300))))


def start_of(decoded: Table) -> Float64[np.ndarray, " k"]:
    """Shares to begin with: those of the artifact's prior, and none of them 0."""
    weights = np.array([float(w) for w in decoded.certificate.prior.weights])
    evenly = _FROM_UNIFORM / len(weights)
    return np.asarray((1 - _FROM_UNIFORM) * weights / weights.sum() + evenly)


def likeliest_shares(
    matrix: Float64[np.ndarray, "k m"], counts: Any, start: Float64[np.ndarray, " k"]
) -> Float64[np.ndarray, " k"]:
    """[k] shares of the labels under which the outputs [m] that were seen are likeliest, about.

    Expectation and maximisation from ``start``: the likelihood never falls, and labels with the
    same outputs keep their proportion.
    """
    shares = start.copy()
    seen = np.asarray(counts) / max(np.sum(counts), 1)
    for _ in range(_STEPS):
        shares *= matrix @ (seen / np.maximum(shares @ matrix, 1e-300))
    return np.asarray(shares / shares.sum())


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
