"""Soft labels that make the expected loss on private labels the loss on the true ones.

RR-Debiased (LabelDP-Pro, Appendix D.1) for any randomizer whose matrix P [k, m] of Pr[output |
label] has full row rank: with weights W [m, k] and P·W = I, the loss Σ_c W[o, c]·ℓ(f, c) of a
private label o has the expectation ℓ(f, y), because Σ_o P[y, o]·W[o, c] is 1 if c = y and else 0.
For randomized response, W[o, c] = (1[o = c] − p/K)/(1 − p): the paper's formula. Where each public
group has a table of its own, a label takes the weights of its row's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64
from labeldp_verify import VerificationError
from labeldp_verify.analysis import probabilities
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.verified import DecodedGroups

from labeldp_compile.tools.inspection import Decoded, decode_any
from labeldp_trainer.data.labels import places, taken
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods.row_tables import rows_by_table, tables_of


def verified(path: Path) -> Decoded | DecodedGroups:
    """An artifact that verifies. Raises InputError."""
    try:
        return decode_any(path)
    except VerificationError as error:
        raise ArtifactError(f"{path}: does not verify: {error}") from None


def matrix_of(decoded: Decoded) -> tuple[Float64[np.ndarray, "k m"], list[int | str | float]]:
    """Pr[output | label], and the m outputs."""
    randomizer = decoded.randomizer
    matrix = probabilities.matrix(randomizer, range(decoded.domain.size))
    return matrix, [probabilities.value(randomizer, o) for o in range(randomizer.outputs)]


def require_debiasing(decoded: Decoded | DecodedGroups, source: str) -> None:
    """Raise ArtifactError unless the bias of every table can be undone."""
    for table, name in tables_of(decoded):
        debiasing_weights(matrix_of(table)[0], f"{source}: {name}" if name else source)


def debiased_classes(
    decoded: Decoded | DecodedGroups,
    table: Int64[np.ndarray, " n"] | None,
    private: Any,
    order: Sequence[int],
) -> Float32[np.ndarray, "n c"] | None:
    """Soft labels for private ones [n], each by the weights of its row's ``table`` [n].

    The columns are those of the labels ``order``. None if an artifact never outputs one of them.
    Raises ArtifactError as ``debiasing_weights``.
    """
    found = np.empty((len(private), len(order)), np.float32)
    for one, rows in rows_by_table(decoded, table, len(private)):
        matrix, outputs = matrix_of(one)
        weights = debiasing_weights(matrix, one.certificate.name)[:, order]
        soft = soft_labels(outputs, weights, taken(private, rows))
        if soft is None:
            return None
        found[rows] = soft
    return found


def debiasing_weights(
    matrix: Float64[np.ndarray, "k m"], source: str
) -> Float64[np.ndarray, "m k"]:
    """W with P·W = I and rows that sum to 1; the inverse of P where m = k.

    Among the solutions it takes the one of least variance under uniform labels: with D the
    probabilities of the outputs on its diagonal, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹. Raises ArtifactError if P
    has no such W, or only one that is too large to be useful.
    """
    k, m = matrix.shape
    if m < k:
        raise ArtifactError(
            f"{source}: has {m} outputs for {k} labels, so that no weights undo its bias: "
            "leave debiased out, or compile randomized_response"
        )
    weights = least_variance_inverse(matrix)
    if weights is None:
        raise ArtifactError(
            f"{source}: several labels have nearly the same outputs, so that no useful weights "
            "undo its bias: leave debiased out, or compile with a larger ε"
        )
    return weights


def soft_labels(
    outputs: Sequence[int | str | float], weights: Float64[np.ndarray, "m k"], private: Any
) -> Float32[np.ndarray, "n k"] | None:
    """The rows of W for private labels [n], or None if one of them is no output of the artifact."""
    rows = places(private, outputs)
    return None if (rows < 0).any() else weights[rows].astype(np.float32)
