"""A vertex by HiGHS: the best weights of given columns at fixed values, with at most 2k of them.

A basic solution of k normalisation and k mean equations has at most 2k columns (Theorem 6). The
solver itself does not need this pass: cutting the extra line at the ends of windows leaves at most
2k − 1 columns without solving anything (``windows.window_columns``), and Newton's method finishes.
It is kept for pools of columns from elsewhere and as a check.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from labeldp_compile.solve.optimal_unbiased.problem import Problem
from labeldp_compile.solve.optimal_unbiased.quadratics import objective, quadratics
from labeldp_compile.solve.optimal_unbiased.windows import Columns


def simplex_pass(problem: Problem, columns: Columns) -> Columns | None:
    """Return the columns and weights of an optimal vertex, or None where HiGHS finds none.

    Args:
        problem: labels, prior and e^-ε; no bias budget.
        columns: the pool; intervals may repeat with other values. Weights are not used.
    """
    quad = quadratics(problem, columns.intervals)
    offset = columns.values - quad.middle
    cost = 0.5 * (quad.mass * offset**2 + quad.spread) - quad.moment * offset
    # One equation per prefix unknown of the dual: each column touches three of them.
    rows = sparse.vstack([quad.operator.T, quad.operator.T @ sparse.diags(columns.values)])
    answer = linprog(
        cost,
        A_eq=rows.tocsr(),
        b_eq=objective(problem),
        bounds=(0, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if answer.x is None:
        return None
    used = np.flatnonzero(answer.x > 0)
    return Columns(columns.intervals.take(used), answer.x[used], columns.values[used])
