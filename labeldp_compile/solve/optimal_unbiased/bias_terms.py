"""What the bias budget adds to the dual: a price of every β, as d_y = E[output | y] − y is free.

|d_y| <= τ         takes τ·Σ|β_y| from the dual objective;
+ λ·Σ p_y·d_y²     takes Σ β_y²/(4λp_y), with β_y = 0 where p_y = 0, and β = 0 where λ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.intervals import Floats
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.quadratics import per_label


@dataclass(frozen=True, eq=False)
class BiasRows:
    """Extra unknowns and rows of the cone program, after the 2k unknowns of the core.

    Attributes:
        extra: how many unknowns. cost: [extra] linear cost. square: [extra] diagonal of the
            quadratic cost. rows: [r, 2k + extra] left sides; right sides are 0. cones: theirs.
    """

    extra: int
    cost: Floats
    square: Floats
    rows: sparse.csr_matrix
    cones: list[Any]


def bias_rows(problem: Program) -> BiasRows:
    """Return what the budget adds to the cone program."""
    k, bias = problem.k, problem.bias
    beta = sparse.hstack([sparse.csr_matrix((k, k)), per_label(k, problem.low)], "csr")
    none = np.zeros(0)
    if bias.most:
        size = sparse.identity(k, format="csr")
        rows = sparse.vstack([sparse.hstack([beta, -size]), sparse.hstack([-beta, -size])], "csr")
        cost = np.full(k, bias.most)
        return BiasRows(k, cost, np.zeros(k), rows, [clarabel.NonnegativeConeT(2 * k)])
    if bias.penalty:
        # β = √(2λp)·e and ½e² keep the numbers even where the prior is small.
        root = sparse.diags(np.sqrt(2.0 * bias.penalty * problem.prior))
        rows = sparse.hstack([beta, -root], "csr")
        return BiasRows(k, np.zeros(k), np.ones(k), rows, [clarabel.ZeroConeT(k)])
    if bias.penalty == 0.0:
        return BiasRows(0, none, none, beta, [clarabel.ZeroConeT(k)])
    return BiasRows(0, none, none, sparse.csr_matrix((0, 2 * k)), [])


@dataclass(frozen=True, eq=False)
class BiasForce:
    """The budget near a solution, for Newton's method.

    Attributes:
        gain: [k] change of the objective's coefficients in the prefix unknowns of β.
        curvature: [k, k] its second derivative there, negative semidefinite.
        held: [r, k] rows of β that are zero.
    """

    gain: Floats
    curvature: sparse.csr_matrix
    held: sparse.csr_matrix


def bias_force(problem: Program, means: Floats) -> BiasForce:
    """Return the terms of Newton's method; ``means`` tell which limits are met.

    Where the bias is at its limit ±τ the sign of β is known; where it is not, β = 0.
    """
    k, bias = problem.k, problem.bias
    beta = per_label(k, problem.low)
    nothing, flat = np.zeros(0, np.int64), sparse.csr_matrix((k, k))
    if bias.most:
        d = means - problem.labels
        at_limit = np.abs(d) > bias.most * (1.0 - 1e-5)
        shift = np.where(at_limit, bias.most * np.sign(d), 0.0)
        return BiasForce(beta.T @ shift, flat, beta[np.flatnonzero(~at_limit)])
    if bias.penalty is not None:
        price = bias.penalty * problem.prior
        free = price > 0
        curve = np.divide(-0.5, price, out=np.zeros(k), where=free)
        square = sparse.csr_matrix(beta.T @ sparse.diags(curve) @ beta)
        return BiasForce(np.zeros(k), square, beta[np.flatnonzero(~free)])
    return BiasForce(np.zeros(k), flat, beta[nothing])
