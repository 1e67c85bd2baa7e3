"""Newton's method on the columns in use: from interior-point accuracy to rounding accuracy.

At an optimum the quadratic of every column in use touches zero. With x the dual unknowns,

    t_I(x) = ½W₂ − A − (W₁ + B)²/(2W) = 0  for the columns in use,  Σ g·S = 1,  Σ g·v·S = y,

and v = (W₁ + B)/W, are as many equations as unknowns (x, g). They are the stationarity
conditions of maximising Σα + Σβ·y under t_I >= 0, a concave problem, so the step is that of
sequential quadratic programming: a column whose weight would fall below zero stops the step and
leaves, as in an active-set method.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from labeldp_compile.solve.optimal_unbiased.sparse_system import solve_system
from labeldp_compile.solve.optimal_unbiased.windows import Columns

# Proximal term on the weights. It leaves solutions alone and, where the columns are redundant,
# turns a singular system into a long step along the redundancy, which the ratio test cuts.
_PROXIMAL = 1e-11
_DIVERGED = 1e8  # a step that no problem with a loss of about 1/2 can ask for


@dataclass(frozen=True, eq=False)
class Polished:
    """Columns and duals after Newton's method.

    Attributes:
        columns: columns with positive weight.
        alpha, beta: [k] multipliers.
        residual: largest |t_I|·g of the last step; the loss is about 1/2 in these units.
    """

    columns: Columns
    alpha: Floats
    beta: Floats
    residual: float


def polish(
    problem: Program,
    columns: Columns,
    means: Floats,
    alpha: Floats,
    beta: Floats,
    steps: int = 30,
) -> Polished | None:
    """Solve the optimality equations, starting from the given columns as the active set.

    Args:
        problem: in units in which the loss is about 1/2. columns: the start and the active set.
        means: [k] about the means of the optimum, to tell which limits of a bias are met.
        alpha, beta: [k] the start of the multipliers.
        steps: at most so many Newton steps.

    Returns:
        The last point, or None where a system could not be solved.
    """
    k, low = problem.k, problem.low
    intervals, weights = columns.intervals, columns.weights
    x = np.concatenate([to_prefix(alpha, low), to_prefix(beta, low)])
    force = bias_force(problem, means)
    gain = objective(problem)
    gain[k:] += force.gain
    quad = quadratics(problem, intervals)
    best = np.inf
    for _ in range(steps):
        step = _step(quad, force, gain, x, weights) if len(intervals) > 1 else None
        if step is None:
            return None
        change = step.weights - weights
        falling = np.flatnonzero(step.weights < 0)
        if falling.size:
            ratio = weights[falling] / -change[falling]
            length = float(ratio.min())
            weights = np.maximum(weights + length * change, 0.0)
            x = x + length * step.move
            keep = np.ones(weights.size, np.bool_)
            keep[falling[ratio <= 2.0 * length + 1e-8]] = False
            intervals, weights = intervals.take(keep), weights[keep]
            quad = quadratics(problem, intervals)
            best = np.inf
            continue
        x, weights = x + step.move, step.weights
        size = float(np.abs(step.touch * weights).max())
        if size < 1e-17 or (size < 1e-13 and size >= 0.5 * best):
            break
        best = min(best, size)
    values = quad.middle + (quad.moment + quad.operator @ x[k:]) / quad.mass
    return Polished(
        Columns(intervals, weights, values),
        from_prefix(x[:k], low),
        from_prefix(x[k:], low),
        best,
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """A Newton step: [2k] move of the unknowns, [m] new weights, [m] t_I before the step."""

    move: Floats
    weights: Floats
    touch: Floats


def _step(
    quad: Quadratics, force: BiasForce, gain: Floats, x: Floats, weights: Floats
) -> _Step | None:
    k = x.size // 2
    moved = quad.operator @ x[k:]
    slope = quad.moment + moved
    offset = slope / quad.mass
    pay = quad.operator @ x[:k] + quad.middle * moved
    touch = 0.5 * quad.spread - pay - 0.5 * slope * offset
    jacobian = sparse.hstack([-quad.operator, -sparse.diags(quad.middle + offset) @ quad.operator])
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
    return _Step(answer[: 2 * k], answer[2 * k : 2 * k + weights.size], touch)
