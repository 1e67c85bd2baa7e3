"""Soft labels that make the expected loss on private labels the loss on the true ones.

RR-Debiased (LabelDP-Pro, Appendix D.1) for any randomizer whose matrix P [k, m] of Pr[output |
label] has full row rank: with weights W [m, k] and P·W = I, the loss Σ_c W[o, c]·ℓ(f, c) of a
private label o has the expectation ℓ(f, y), because Σ_o P[y, o]·W[o, c] is 1 if c = y and else 0.
For randomized response, W[o, c] = (1[o = c] − p/K)/(1 − p): the paper's formula. For sets Z of a
balanced design it is (1[c ∈ Z] − a)/s, with a = Pr[c ∈ Z] of all other classes and a + s of c.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from labeldp_verify.analysis import least_variance_inverse, matrix, value
from labeldp_verify.artifact import Table

from labeldp_trainer.errors import ArtifactError


def matrix_of(decoded: Table) -> tuple[Float64[np.ndarray, "k m"], list[int | str | float]]:
    """Pr[output | label], and the m outputs."""
    randomizer = decoded.randomizer
    table = matrix(randomizer, range(decoded.domain.size))
    return table, [value(randomizer, o) for o in range(randomizer.outputs)]


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
            "train a network with correction: forward, or compile randomized_response"
        )
    weights = least_variance_inverse(matrix)
    if weights is None:
        raise ArtifactError(
            f"{source}: several labels have nearly the same outputs, so that no useful weights "
            "undo its bias: train a network with correction: forward, or compile with a larger ε"
        )
    return weights
