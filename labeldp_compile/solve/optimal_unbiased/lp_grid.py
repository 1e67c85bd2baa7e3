"""Algorithm 1 of the unbiased-randomizer paper on a given output grid, through HiGHS.

The ε-DP constraints are written with one minimum per output, m_i <= P[i | y] <= e^ε·m_i: 2kn rows
instead of one for every pair of labels. It serves any loss and is the independent check of the
continuous solver. HiGHS meets constraints to about 1e-7, so its answer is not ε-DP as it stands:
only what is rounded to integers and verified is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from labeldp_compile.solve.optimal_unbiased.intervals import Floats


@dataclass(frozen=True, eq=False)
class GridSolution:
    """Answer of the grid LP.

    Attributes:
        table: [k, n] P[i | y]. loss: expected loss under the prior.
    """

    table: Floats
    loss: float


def solve_lp_grid(
    labels: NDArray[np.floating],
    prior: NDArray[np.floating],
    epsilon: float,
    outputs: NDArray[np.floating],
    loss_matrix: NDArray[np.floating],
    unbiased: bool = True,
) -> GridSolution:
    """Solve the linear program.

    Args:
        labels: [k]. prior: [k], sums to 1. epsilon: privacy parameter.
        outputs: [n] allowed output values. loss_matrix: [k, n] loss of output i for label y.
        unbiased: whether to require E[output | y] = y.

    Raises:
        ValueError: if no mechanism on this grid meets the constraints, or HiGHS gives up.
    """
    k, n = len(labels), len(outputs)
    y, v = np.asarray(labels, np.float64), np.asarray(outputs, np.float64)
    cells = sparse.identity(k * n, format="csr")
    column = sparse.vstack([sparse.identity(n)] * k, format="csr")
    # Unknowns: P row by row, then the n minima.
    bounds = sparse.vstack(
        [
            sparse.hstack([-cells, column]),
            sparse.hstack([cells, -float(np.exp(epsilon)) * column]),
        ],
        format="csr",
    )
    rows = sparse.kron(sparse.identity(k), np.ones((1, n)))
    right = np.ones(k)
    if unbiased:
        # Scaled so that both kinds of rows have entries of about one.
        scale = max(1.0, float(np.abs(v).max()))
        rows = sparse.vstack([rows, sparse.kron(sparse.identity(k), v[None, :] / scale)])
        right = np.concatenate([right, y / scale])
    equal = sparse.hstack([rows, sparse.csr_matrix((right.size, n))], format="csr")
    weighted = np.asarray(prior, np.float64)[:, None] * np.asarray(loss_matrix, np.float64)
    answer = linprog(
        np.concatenate([weighted.ravel(), np.zeros(n)]),
        A_ub=bounds,
        b_ub=np.zeros(2 * k * n),
        A_eq=equal,
        b_eq=right,
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        raise ValueError(f"the linear program on {n} outputs was not solved: {answer.message}")
    return GridSolution(answer.x[: k * n].reshape(k, n), float(answer.fun))


def feasible_outputs(labels: NDArray[np.floating], epsilon: float, count: int) -> Floats:
    """Return Algorithm 2's grid: ``count`` even steps between the extremes of debiased RR."""
    y = np.asarray(labels, np.float64)
    gain = float(np.expm1(epsilon))
    ends = [((gain + y.size) * end - y.sum()) / gain for end in (y[0], y[-1])]
    return np.linspace(ends[0], ends[1], count)
