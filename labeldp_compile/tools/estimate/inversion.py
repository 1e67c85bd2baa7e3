"""Weights that undo a randomizer on average: P·W = I.

For the table P [c, m] of Pr[output | class of labels], a private label o stands for the row W[o]:
its expectation under class y is the y-th unit vector. Among all such W the one of least variance
under uniform labels is taken, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹, D the mean probabilities of the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.classes import LabelClasses, class_matrix
from labeldp_compile.tools.inspection import Decoded

Floats = NDArray[np.float64]
MAX_CLASSES, MAX_ENTRIES = 4_000, 16_000_000
_LARGEST_WEIGHT = 1e6  # beyond it, no number of rows that exists brings the noise down
_RESIDUAL = 1e-6


class NotEstimableError(Exception):
    """The randomizer does not support this estimate; the message says why."""


@dataclass(frozen=True)
class Inverse:
    """The table and its weights.

    Attributes:
        table: [c, m] Pr[output | class].
        weights: [m, c] with table·weights = 1.
    """

    table: Floats
    weights: Floats


def invert(decoded: Decoded, classes: LabelClasses) -> Inverse:
    """Raises NotEstimableError if no useful weights exist, or the table is too large."""
    c, m = classes.count, decoded.randomizer.outputs
    if c == 1:
        raise NotEstimableError("every label has the same outputs: they say nothing")
    if c > MAX_CLASSES or c * m > MAX_ENTRIES:
        raise NotEstimableError(
            f"its table of {c:,} × {m:,} probabilities is too large to invert (at most "
            f"{MAX_CLASSES:,} labels that are told apart, and {MAX_ENTRIES:,} probabilities)"
        )
    if m < c:
        raise NotEstimableError(
            f"it has {m:,} outputs for {c:,} labels that it tells apart: different histograms "
            "of labels give the same outputs"
        )
    table = class_matrix(decoded, classes)
    weights = least_variance_inverse(table)
    if weights is None:
        raise NotEstimableError(
            "several labels have nearly the same outputs: no number of rows would bring the noise "
            "of a histogram down; compile with a larger ε"
        )
    return Inverse(table, weights)


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
