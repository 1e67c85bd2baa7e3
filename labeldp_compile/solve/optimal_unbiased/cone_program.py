"""The optimum over given intervals, as a second-order cone program in Clarabel.

For an interval with entries S(y) = 1 inside and e^-ε outside, and p the prior, let
W, W₁, W₂ = Σ p·S·(1, y, y²), A = Σ α·S, B = Σ β·S. The dual of the mechanism's problem is

    max Σα + Σβ·y   such that, for every interval,  ½W·v² − (W₁ + B)·v + ½W₂ − A >= 0 for all v,

that is (W₁ + B)² <= W·(W₂ − 2A): one cone of three numbers per interval. Clarabel solves this side:
it has 2k unknowns for any number of intervals, and the multipliers of the cones are the mechanism
(weights, and weights times values).
"""

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.bias_terms import bias_rows
from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Intervals, Ints, Runs
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.quadratics import (
    from_prefix,
    objective,
    per_label,
    quadratics,
)
from labeldp_compile.solve.optimal_unbiased.windows import Columns, Iterate


@dataclass(frozen=True, eq=False)
class Guards:
    """Extra inequalities h_y(v) >= 0 at outputs v outside the window of a label.

    They hold at an optimum. Without them, the multipliers of very rare labels, and of labels that
    share a window, are hardly determined: they meet the conditions on intervals, but not those on
    other columns. A wrong guard lowers the bound, but cannot make it false.

    Attributes:
        labels: [n] label indices. values: [n] the outputs.
    """

    labels: Ints
    values: Floats


def solve_cones(
    problem: Program,
    intervals: Intervals,
    tolerance: float,
    runs: Runs | None = None,
    guards: Guards | None = None,
) -> Iterate:
    """Solve over the given intervals only.

    Args:
        problem: in units in which the loss is about 1/2.
        intervals: the columns; they must contain a feasible mechanism.
        tolerance: gap and residuals asked of Clarabel. runs: further columns.
        guards: further inequalities.

    Returns:
        The last iterate, with any status; windows and pricing decide how good it is.
    """
    k, low = problem.k, problem.low
    quad = quadratics(problem, intervals, runs)
    m = quad.mass.size
    # Rows x + W, x − W and 2z with x = W₂ − 2A and z = W₁ + B, relative to the middle of the
    # interval (a change of basis that does not affect the cone). They are not divided by W, so that
    # multipliers are weights and an interior point resolves weights and F evenly, also in columns
    # with very small costs.
    pays = 2.0 * quad.operator
    shifted = sparse.diags(quad.middle) @ pays
    rows = sparse.bmat([[pays, shifted], [pays, shifted], [None, -pays]], format="coo")
    place = np.concatenate([3 * np.arange(m) + i for i in range(3)])
    matrix = sparse.csc_matrix((rows.data, (place[rows.row], rows.col)), shape=(3 * m, 2 * k))
    bound = np.empty((m, 3))
    bound[:, 0] = quad.spread + quad.mass
    bound[:, 1] = quad.spread - quad.mass
    bound[:, 2] = 2.0 * quad.moment

    cones = [clarabel.SecondOrderConeT(3)] * m
    right = bound.ravel()
    if guards is not None:
        own, value = per_label(k, low)[guards.labels], guards.values
        matrix = sparse.vstack([matrix, sparse.hstack([own, sparse.diags(value) @ own])])
        away = problem.labels[guards.labels] - value
        right = np.concatenate([right, 0.5 * problem.prior[guards.labels] * away**2])
        cones = [*cones, clarabel.NonnegativeConeT(value.size)]
    cost, square, rows, more = bias_rows(problem)
    matrix = sparse.hstack([matrix, sparse.csc_matrix((matrix.shape[0], cost.size))])
    matrix = sparse.vstack([matrix, rows], "csc")

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = clarabel.DefaultSolver(
        sparse.diags(np.concatenate([np.zeros(2 * k), square]), format="csc"),
        np.concatenate([-objective(problem), cost]),
        matrix,
        np.concatenate([right, np.zeros(rows.shape[0])]),
        [*cones, *more],
        settings,
    )
    out = solver.solve()
    x = np.asarray(out.x)
    z = np.asarray(out.z)[: 3 * m].reshape(m, 3)
    half = np.maximum(z[:, 0] + z[:, 1], 0.0)
    values = quad.middle - np.divide(z[:, 2], half, out=np.zeros(m), where=half > 0)
    n = len(intervals)
    return Iterate(
        Columns(intervals, 2.0 * half[:n], values[:n]),
        from_prefix(x[:k], low),
        from_prefix(x[k : 2 * k], low),
        str(out.status).lower(),
        -float(out.obj_val),
    )
