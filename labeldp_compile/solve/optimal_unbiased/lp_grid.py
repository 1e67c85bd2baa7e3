"""Algorithm 1 of the unbiased-randomizer paper on a given output grid, through HiGHS.

Every output has a minimum m_i and P[i | y] = m_i + x_yi with 0 <= x_yi <= (e^ε − 1)·m_i: kn rows
instead of one for every pair of labels, and minima that are right in relation to themselves, for
what HiGHS may err by, about 1e-7, it errs by in the x. It serves any loss and is the independent
check of the continuous solver. Its answer is not ε-DP as it stands: only what is rounded to
integers and verified is.

Its dual values are not handed on: they bound the loss of randomizers on this grid only, and what a
certificate claims is a bound over all outputs. Nor does one ε of a sweep start from the basis of
another (measured: 0.02 to 0.3 s instead of 0.1 to 0.5 s, 52 labels, 104 outputs): where the optimum
is not unique, what a sweep says of an ε would depend on its neighbours, and not be what ``compile``
makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.solve.highs import TimeLimitError, UnsolvedError, solve_linear_program
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
    observer: Observer = QUIET,
) -> GridSolution:
    """Solve the linear program: P with E[output | y] = y.

    Args:
        labels: [k]. prior: [k], sums to 1. epsilon: privacy parameter.
        outputs: [n] allowed output values. loss_matrix: [k, n] loss of output i for label y.
        observer: told a line every few seconds.

    Raises:
        ValueError: if no mechanism on this grid meets the constraints, or HiGHS gives up.
        TimeLimitError: after an hour.
    """
    k, n = len(labels), len(outputs)
    y, v = np.asarray(labels, np.float64), np.asarray(outputs, np.float64)
    cells = sparse.identity(k * n, format="csr")
    columns = sparse.vstack([sparse.identity(n)] * k, format="csr")
    # Unknowns: x row by row, then the n minima.
    private = sparse.hstack([cells, -float(np.expm1(epsilon)) * columns])
    # Scaled so that both kinds of rows have entries of about one.
    scale = max(1.0, float(np.abs(v).max()))
    sums, right = [np.ones((1, n)), v[None, :] / scale], np.concatenate([np.ones(k), y / scale])
    every = [
        sparse.hstack([sparse.kron(sparse.identity(k), row), np.repeat(row, k, axis=0)])
        for row in sums
    ]
    weighted = np.asarray(prior, np.float64)[:, None] * np.asarray(loss_matrix, np.float64)
    try:
        unknowns, loss = solve_linear_program(
            np.concatenate([weighted.ravel(), weighted.sum(axis=0)]),
            sparse.vstack([private, *every], format="csc"),
            np.concatenate([np.full(k * n, -np.inf), right]),
            np.concatenate([np.zeros(k * n), right]),
            observer=observer,
        )
    except TimeLimitError as error:
        raise TimeLimitError(f"{error}: give fewer outputs") from None
    except UnsolvedError as error:
        raise ValueError(f"the linear program on {n} outputs was not solved: {error}") from None
    unknowns = np.maximum(unknowns, 0.0)
    return GridSolution(unknowns[: k * n].reshape(k, n) + unknowns[k * n :], loss)
