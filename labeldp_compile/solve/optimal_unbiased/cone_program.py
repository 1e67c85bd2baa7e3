"""The optimum over given intervals: a second-order cone program in Clarabel, polished by Newton.

For an interval with entries S(y) = 1 inside and e^-ε outside, and p the prior, let
W, W₁, W₂ = Σ p·S·(1, y, y²), A = Σ α·S, B = Σ β·S. The dual of the mechanism's problem is

    max Σα + Σβ·y   such that, for every interval,  ½W·v² − (W₁ + B)·v + ½W₂ − A >= 0 for all v,

that is (W₁ + B)² <= W·(W₂ − 2A): one cone of three numbers per interval. Clarabel solves this side:
it has 2k unknowns for any number of intervals, and the multipliers of the cones are the mechanism
(weights, and weights times values).
"""

from dataclasses import dataclass
from functools import partial

import clarabel
import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.problem import Floats, Intervals, Ints, Program, Runs
from labeldp_compile.solve.optimal_unbiased.terms import (
    BiasForce,
    Quadratics,
    bias_force,
    bias_rows,
    from_prefix,
    objective,
    per_label,
    quadratics,
    to_prefix,
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


# Newton's method on the columns in use: from interior-point accuracy to rounding accuracy.
#
# At an optimum, the quadratic of every column in use touches zero. With the dual unknowns x,
#
#     t_I(x) = ½W₂ − A − (W₁ + B)²/(2W) = 0  for the columns in use,  Σ g·S = 1,  Σ g·v·S = y,
#
# and v = (W₁ + B)/W, these are as many equations as unknowns (x, g). They are the stationarity
# conditions of maximizing Σα + Σβ·y under t_I >= 0, a concave problem. So the step is that of
# sequential quadratic programming. A column whose weight would fall below zero stops the step and
# is removed, as in an active-set method.


# Proximal term on the weights. It does not change solutions. If the columns are redundant, it turns
# a singular system into a long step along the redundancy, which the ratio test cuts.
_PROXIMAL = 1e-11
_FEW = 400  # unknowns that are solved faster than scipy.sparse.linalg is imported
_DIVERGED = 1e8  # larger than any step of a problem with a loss of about 1/2


def polish(problem: Program, start: Iterate, means: Floats, steps: int = 30) -> Iterate | None:
    """Solve the optimality equations.

    Args:
        problem: in units in which the loss is about 1/2. start: its columns are the active set.
        means: [k] about the means of the optimum, to see which limits of a bias are reached.
        steps: the most Newton steps.

    Returns:
        The last point with its columns of positive weight; None if a system could not be solved.
    """
    k, low = problem.k, problem.low
    intervals, weights = start.columns.intervals, start.columns.weights
    x = np.concatenate([to_prefix(start.alpha, low), to_prefix(start.beta, low)])
    force = bias_force(problem, means)
    gain = objective(problem)
    gain[k:] += force.gain
    quad = quadratics(problem, intervals)
    best = np.inf
    for _ in range(steps):
        step = _step(quad, force, gain, x, weights) if len(intervals) > 1 else None
        if step is None:
            return None
        move, aimed, touch = step
        change = aimed - weights
        falling = np.flatnonzero(aimed < 0)
        if falling.size:
            ratio = weights[falling] / -change[falling]
            length = float(ratio.min())
            weights = np.maximum(weights + length * change, 0.0)
            x = x + length * move
            keep = np.ones(weights.size, np.bool_)
            keep[falling[ratio <= 2.0 * length + 1e-8]] = False
            intervals, weights = intervals.take(keep), weights[keep]
            quad = quadratics(problem, intervals)
            best = np.inf
            continue
        x, weights = x + move, aimed
        size = float(np.abs(touch * weights).max())
        if size < 1e-17 or (size < 1e-13 and size >= 0.5 * best):
            break
        best = min(best, size)
    columns = Columns(intervals, weights, quad.touch(x)[1])
    return Iterate(columns, from_prefix(x[:k], low), from_prefix(x[k:], low))


def _step(
    quad: Quadratics, force: BiasForce, gain: Floats, x: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats] | None:
    """A Newton step: [2k] move of the unknowns, [m] new weights, [m] t_I before the step."""
    k = x.size // 2
    touch, values = quad.touch(x)
    jacobian = sparse.hstack([-quad.operator, -sparse.diags(values) @ quad.operator])
    held = sparse.hstack([sparse.csr_matrix((force.held.shape[0], k)), force.held])
    rows = sparse.vstack([jacobian, held])
    bend = quad.operator.T @ sparse.diags(weights / quad.mass) @ quad.operator
    curvature = sparse.block_diag([sparse.csr_matrix((k, k)), force.curvature - bend])
    curvature = curvature - sparse.diags(np.full(2 * k, _PROXIMAL))
    corner = sparse.diags(np.full(rows.shape[0], -_PROXIMAL))
    system = sparse.bmat([[curvature, rows.T], [rows, corner]], format="csc")
    slopes = gain.copy()
    slopes[k:] += force.curvature @ x[k:]
    right = np.concatenate([-slopes, -touch - _PROXIMAL * weights, -(held @ x)])
    answer = solve_system(system, right)
    if answer is None or not np.abs(answer).max() < _DIVERGED:
        return None
    return answer[: 2 * k], answer[2 * k : 2 * k + weights.size], touch


def solve_system(system: sparse.csc_matrix, right: Floats) -> Floats | None:
    """The solution [n] of system @ x = right, refined once; None if the system is singular.

    Few unknowns are solved by LAPACK, many by SuperLU.
    """
    try:
        if right.size <= _FEW:
            system = system.toarray()
            solve = partial(np.linalg.solve, system)
        else:
            from scipy.sparse.linalg import splu  # noqa: PLC0415  # a tenth of a second

            solve = splu(system).solve
        answer: Floats = solve(right)
    except (np.linalg.LinAlgError, RuntimeError):  # exactly singular
        return None
    return answer + solve(right - system @ answer)
