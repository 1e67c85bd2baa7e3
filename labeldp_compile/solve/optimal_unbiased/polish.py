"""Newton's method on the columns in use: from interior-point accuracy to rounding accuracy.

At an optimum, the quadratic of every column in use touches zero. With the dual unknowns x,

    t_I(x) = ½W₂ − A − (W₁ + B)²/(2W) = 0  for the columns in use,  Σ g·S = 1,  Σ g·v·S = y,

and v = (W₁ + B)/W, these are as many equations as unknowns (x, g). They are the stationarity
conditions of maximizing Σα + Σβ·y under t_I >= 0, a concave problem. So the step is that of
sequential quadratic programming. A column whose weight would fall below zero stops the step and is
removed, as in an active-set method.
"""

from functools import partial

import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.bias_terms import BiasForce, bias_force
from labeldp_compile.solve.optimal_unbiased.intervals import Floats
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.quadratics import (
    Quadratics,
    from_prefix,
    objective,
    quadratics,
    to_prefix,
)
from labeldp_compile.solve.optimal_unbiased.windows import Columns, Iterate

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
