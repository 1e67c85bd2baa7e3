"""The optimum over given intervals: a second-order cone program in Clarabel, polished by Newton.

For an interval with entries S(y) = 1 inside and e^-ε outside, and p the prior, let
W, W₁, W₂ = Σ p·S·(1, y, y²), A = Σ α·S, B = Σ β·S. The dual of the mechanism's problem is

    max Σα + Σβ·y   such that, for every interval,  ½W·v² − (W₁ + B)·v + ½W₂ − A >= 0 for all v,

that is (W₁ + B)² <= W·(W₂ − 2A): one cone of three numbers per interval. Clarabel solves this side:
it has 2k unknowns for any number of intervals, and the multipliers of the cones are the mechanism
(weights, and weights times values).

The terms of the dual are one quadratic in the output value for each column, and the bias budget.
The dual unknowns are scaled prefix sums of α and of β, x = (a, b) of length 2k. The sum of α in an
interval is then a difference of two of them. So the operator from unknowns to columns has at most
three entries per row (two ends and the total).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.dual import (
    TINY,
    Bound,
    clip_beta,
    dual_value,
    even_roots,
    local_places,
    lowered,
    price,
    prove,
    window_range,
)
from labeldp_compile.solve.optimal_unbiased.problem import (
    Columns,
    Floats,
    Intervals,
    Ints,
    Iterate,
    Program,
    Runs,
)


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Data of the columns; S is 1 inside and e^-ε outside, values are relative to ``middle``.

    Attributes:
        operator: [m, k] sparse, from prefix unknowns to Σ_y S(y)·α_y.
        middle: [m] centre of the interval; at large ε a value is very close to it.
        mass, moment, spread: [m] Σ p·S·(1, y − middle, (y − middle)²).
    """

    operator: sparse.csr_matrix
    middle: Floats
    mass: Floats
    moment: Floats
    spread: Floats

    def touch(self, x: Floats) -> tuple[Floats, Floats]:
        """Return [m] ½W₂ − A − (W₁ + B)²/(2W) and the values (W₁ + B)/W at unknowns x [2k]."""
        k = self.operator.shape[1]
        moved = self.operator @ x[k:]
        slope = self.moment + moved
        offset = slope / self.mass
        pay = self.operator @ x[:k] + self.middle * moved
        return 0.5 * self.spread - pay - 0.5 * slope * offset, self.middle + offset


def quadratics(problem: Program, intervals: Intervals, runs: Runs | None = None) -> Quadratics:
    """Collect the data of the columns.

    Args:
        problem: labels, prior and e^-ε. intervals: the columns. runs: more columns, after them.
    """
    k, m = problem.k, len(intervals)
    owner, first, last = np.arange(m), intervals.first, intervals.last
    if runs is not None:
        owner = np.concatenate([owner, runs.owner + m])
        first, last = np.concatenate([first, runs.first]), np.concatenate([last, runs.last])
        m += runs.count
    y, p = problem.labels.astype(np.longdouble), problem.prior.astype(np.longdouble)
    # Prefix sums in the longest float that exists: at large ε the moment of an interval about its
    # middle is a difference of numbers that are ten digits larger.
    sums = np.concatenate([np.zeros((3, 1)), np.cumsum([p, p * y, p * y**2], axis=1)], axis=1)
    inside = np.zeros((m, 3), np.longdouble)
    np.add.at(inside, owner, (sums[:, last + 1] - sums[:, first]).T)
    lowest, highest = np.full(m, k - 1), np.zeros(m, np.int64)
    np.minimum.at(lowest, owner, first)
    np.maximum.at(highest, owner, last)
    middle = (y[lowest] + y[highest]) / 2
    mass, moment, second = problem.low * (sums[:, -1:] - inside.T) + inside.T
    spread = second - middle * (2 * moment - middle * mass)
    return Quadratics(
        operator(owner, first, last, (m, k), problem.low),
        middle.astype(np.float64),
        mass.astype(np.float64),
        (moment - middle * mass).astype(np.float64),
        np.maximum(spread, 0.0).astype(np.float64),
    )


def operator(
    owner: Ints, first: Ints, last: Ints, shape: tuple[int, int], low: float
) -> sparse.csr_matrix:
    """Return the [m, k] map from prefix unknowns to Σ_y S(y)·α_y of every column.

    Unknown j < k − 1 is (1 − e^-ε)·(α_0 + … + α_j), unknown k − 1 is the total Σα.

    Args:
        owner, first, last: [r] the runs of labels and the columns they belong to.
        shape: m and k. low: e^-ε.
    """
    m, k = shape
    left, right = first > 0, last < k - 1
    rows = np.concatenate([owner[right], owner[left], owner[~right], np.arange(m)])
    cols = np.concatenate([last[right], first[left] - 1, last[~right], np.full(m, k - 1)])
    ends = [np.ones(right.sum()), -np.ones(left.sum()), np.full((~right).sum(), 1.0 - low)]
    data = np.concatenate([*ends, np.full(m, low)])
    return sparse.coo_matrix((data, (rows, cols)), shape=shape).tocsr()


def per_label(k: int, low: float) -> sparse.csr_matrix:
    """Return the [k, k] map from prefix unknowns to per-label multipliers."""
    scale = np.full(k, 1.0 / (1.0 - low))
    below = -scale[1:]
    scale[-1] = 1.0
    return sparse.diags([scale, below], [0, -1], format="csr")


def objective(problem: Program) -> Floats:
    """Return the coefficients of Σα + Σβ·y in the prefix unknowns (a, b). [2k]"""
    k = problem.k
    c = np.zeros(2 * k)
    c[k - 1] = 1.0
    c[k : 2 * k - 1] = -np.diff(problem.labels) / (1.0 - problem.low)
    c[2 * k - 1] = problem.labels[-1]
    return c


def from_prefix(x: Floats, low: float) -> Floats:
    """Return per-label multipliers from k prefix unknowns."""
    return np.diff(np.concatenate([[0.0], x[:-1] / (1.0 - low), x[-1:]]))


def to_prefix(multipliers: Floats, low: float) -> Floats:
    """Return the k prefix unknowns of per-label multipliers."""
    sums = np.cumsum(multipliers)
    sums[:-1] *= 1.0 - low
    return sums


# The part of the bias budget in the dual: a price for every β, because d_y = E[output | y] − y is
# free.
#
# |d_y| <= τ         subtracts τ·Σ|β_y| from the dual objective; + λ·Σ p_y·d_y²     subtracts Σ
# β_y²/(4λp_y), with β_y = 0 where p_y = 0, and β = 0 where λ = 0.
#
# In the cone program these are more unknowns and rows, in Newton's method forces, and in the
# interior point method a barrier. With u_y >= |β_y| the first is −τ·Σu_y under u − β >= 0 and u + β
# >= 0, whose multipliers differ by the bias d. The second has no inequality.


_LEAST_SHARE = 1e-12  # of the prior; rarer labels are treated as if they had this share
BACK = 0.99  # of the way to the boundary


def bias_rows(problem: Program) -> tuple[Floats, Floats, sparse.csr_matrix, list[Any]]:
    """Return the budget's part of the cone program, after the 2k unknowns of its core.

    It is [n] the linear cost of n more unknowns, [n] the diagonal of their quadratic cost,
    [r, 2k + n] rows whose right sides are 0, and their cones.
    """
    k, bias = problem.k, problem.bias
    beta = sparse.hstack([sparse.csr_matrix((k, k)), per_label(k, problem.low)], "csr")
    none = np.zeros(0)
    if bias.most:
        size = sparse.identity(k, format="csr")
        rows = sparse.vstack([sparse.hstack([beta, -size]), sparse.hstack([-beta, -size])], "csr")
        return np.full(k, bias.most), np.zeros(k), rows, [clarabel.NonnegativeConeT(2 * k)]
    if bias.penalty:
        # β = √(2λp)·e and ½e² keep the numbers even where the prior is small.
        root = sparse.diags(np.sqrt(2.0 * bias.penalty * problem.prior))
        rows = sparse.hstack([beta, -root], "csr")
        return np.zeros(k), np.ones(k), rows, [clarabel.ZeroConeT(k)]
    if bias.penalty == 0.0:
        return none, none, beta, [clarabel.ZeroConeT(k)]
    return none, none, beta[:0], []


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
    """Return the terms of Newton's method; ``means`` show which limits are reached.

    If the bias is at its limit ±τ, the sign of β is known; otherwise β = 0.
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


def reach(values: Floats, moves: Floats) -> float:
    """The longest step, at most 1 / BACK, that keeps all values from being negative."""
    falling = moves < 0
    longest = float((-values[falling] / moves[falling]).min(initial=1.0 / BACK))
    return min(longest, 1.0 / BACK)


class Barrier:
    """The budget's part of an interior point, here without a budget; arrays are [k], by label."""

    size = 0
    """Number of inequalities."""

    def __init__(self, k: int) -> None:
        """For k labels."""
        self._none = np.zeros(k)

    def gap(self) -> float:
        """Σ slack·multiplier."""
        return 0.0

    def slope(self) -> Floats:
        """Of the objective with its multipliers, by β."""
        return self._none

    def curvature(self) -> Floats:
        """The entries of Newton's matrix for every β; empty if there are none."""
        return self._none[:0]

    def aim(self, centre: float, trust: float) -> Floats:
        """The right side for every β; slacks times multipliers should become ``centre``.

        ``trust`` weighs the second-order term of the last move.
        """
        return self._none

    def move(self, beta: Floats) -> tuple[float, float]:
        """Follow a move of β; return how far slacks and multipliers can go."""
        return 1.0 / BACK, 1.0 / BACK

    def ahead(self, slacks: float, multipliers: float) -> float:
        """The gap after steps of these lengths."""
        return 0.0

    def step(self, slacks: float, multipliers: float) -> None:
        """Take the steps."""


class _Penalty(Barrier):
    """λ·Σ p_y·d_y²."""

    def __init__(self, problem: Program, penalty: float, beta: Floats) -> None:
        super().__init__(problem.k)
        price = 2.0 * penalty * np.maximum(problem.prior, _LEAST_SHARE)
        self._curvature, self._beta, self._move = 1.0 / price, beta, np.zeros_like(beta)

    def slope(self) -> Floats:
        return -self._curvature * self._beta

    def curvature(self) -> Floats:
        return self._curvature

    def move(self, beta: Floats) -> tuple[float, float]:
        self._move = beta
        return super().move(beta)

    def step(self, slacks: float, multipliers: float) -> None:
        self._beta = self._beta + slacks * self._move


class _Most(Barrier):
    """|d_y| <= τ."""

    def __init__(self, most: float, beta: Floats, centre: float) -> None:
        super().__init__(beta.size)
        self.size = 2 * beta.size
        self._most = most
        # Slacks u − β, u + β and multipliers, whose sum should be τ.
        room = np.maximum(centre / most, 1e-3 * np.abs(beta))
        u = np.abs(beta) + room
        self._slack = np.stack([u - beta, u + beta])
        share = 1.0 / self._slack
        self._weight = most * share / share.sum(axis=0)
        self._target = self._slacks = self._weights = np.zeros_like(self._slack)

    def gap(self) -> float:
        return float((self._slack * self._weight).sum())

    def slope(self) -> Floats:
        return np.asarray(self._weight[1] - self._weight[0])

    def _ratios(self) -> tuple[Floats, Floats, Floats]:
        e = self._weight / self._slack
        return e, e.sum(axis=0), e[0] - e[1]

    def curvature(self) -> Floats:
        e, both, _ = self._ratios()
        return np.asarray(4.0 * e[0] * e[1] / both)

    def aim(self, centre: float, trust: float) -> Floats:
        self._target = centre - self._weight * self._slack - trust * self._slacks * self._weights
        _, both, differ = self._ratios()
        pull = self._target / self._slack
        return np.asarray(pull[1] - pull[0] + differ / both * self._lacking(pull))

    def _lacking(self, pull: Floats) -> Floats:
        return np.asarray(self._weight.sum(axis=0) - self._most + pull.sum(axis=0))

    def move(self, beta: Floats) -> tuple[float, float]:
        e, both, differ = self._ratios()
        pull = self._target / self._slack
        u = (self._lacking(pull) + differ * beta) / both
        self._slacks = np.stack([u - beta, u + beta])
        self._weights = pull - e * self._slacks
        return reach(self._slack, self._slacks), reach(self._weight, self._weights)

    def ahead(self, slacks: float, multipliers: float) -> float:
        weight = self._weight + multipliers * self._weights
        return float((weight * (self._slack + slacks * self._slacks)).sum())

    def step(self, slacks: float, multipliers: float) -> None:
        self._slack = self._slack + slacks * self._slacks
        self._weight = self._weight + multipliers * self._weights


def bias_barrier(problem: Program, beta: Floats, centre: float) -> Barrier:
    """The terms of the problem's budget.

    Args:
        problem: its budget is none, a largest bias, or a penalty above zero.
        beta: [k] the start. centre: the assumed product of slack and multiplier.
    """
    bias = problem.bias
    if bias.most:
        return _Most(bias.most, beta, centre)
    if bias.penalty:
        return _Penalty(problem, bias.penalty, beta)
    return Barrier(problem.k)


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

    square = sparse.diags(np.concatenate([np.zeros(2 * k), square]), format="csc")
    cost = np.concatenate([-objective(problem), cost])
    right = np.concatenate([right, np.zeros(rows.shape[0])])
    out = solved(square, cost, (matrix, right, [*cones, *more]), tolerance, tolerance)
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


Limits = tuple[sparse.csc_matrix, Floats, list[Any]]


def solved(
    square: sparse.csc_matrix, cost: Floats, limits: Limits, tolerance: float, unmet: float
) -> clarabel.DefaultSolution:
    """Clarabel's answer.

    Args:
        square, cost: the objective. limits: a matrix, its right side, and the cones.
        tolerance: of the gap. unmet: of the limits.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.tol_feas = False, 1, unmet
    settings.tol_gap_abs = settings.tol_gap_rel = tolerance
    return clarabel.DefaultSolver(square, cost, *limits, settings).solve()


def largest_share(rows: sparse.csc_matrix, right: Floats, equal: int = 0) -> Floats:
    """x [n] with rows·x ≤ right, the first ones equal, and the largest last unknown."""
    n = rows.shape[1]
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(right.size - equal)]
    cost = -1.0 * (np.arange(n) == n - 1)
    found = solved(sparse.csc_matrix((n, n)), cost, (rows, right, cones), 1e-6, 1e-9)
    return np.asarray(found.x)


# The dual values of labels with equal rows, between which ``complete`` cannot always split α.
#
# These serve where the nearest α is not found. β stays, and every column in use touches zero. So α
# is known but for that split, which must have F >= 0 between the outputs. With the labels of a
# column in use, of weight W and output u, F(v) is ½W·(v − u)². The least of these is the most that
# F(v) can be. Linear programs find the α with the largest share of it, for outputs where F was
# negative and the labels with h < 0 there.


_ROOM = 1e-5  # how far this is below the loss, relatively, which leaves F some room
_PROGRAMS = 30
_USED = 1e-9  # weight of a column in use
_FAR = 1e3  # an α that nothing limits


def tightened_by_programs(problem: Program, near: Iterate, columns: Columns, loss: float) -> Bound:
    """The best bound with this β.

    Args:
        problem: in units in which the loss is about 1/2. near: nearly optimal multipliers.
        columns: the best mechanism, as windows. loss: its objective.
    """
    y, p, low, k = problem.labels, problem.prior, problem.low, problem.k
    columns, beta = columns.take(columns.weights > _USED), clip_beta(problem, near.beta)
    mass = quadratics(problem, columns.intervals).mass
    missed = max(dual_value(problem, near.alpha, beta) - loss, 0.0) + _ROOM * loss
    least, most = np.clip(window_range(problem, columns, beta), -_FAR, _FAR)
    # Unknowns: the prefix unknowns of α, and the share.
    each, end = per_label(k, low), np.zeros((2, k))
    end[1, -1] = -1.0
    rows = sparse.bmat([[each, None], [-each, None], [end, [[1.0], [0.0]]]], "csc")
    right = np.concatenate([most, -least, [1.0, missed - near.alpha.sum()]])
    # At first, the roots of labels with equal rows are at even places, for any prior.
    ends = np.unique(np.append(columns.intervals.first, columns.intervals.last + 1))
    run = np.searchsorted(ends, np.arange(k), side="right")
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = -beta * y - beta**2 / (2.0 * p)  # of h + α
        room = np.asarray(np.bincount(run, near.alpha - least), np.float64)
        split = bottom + even_roots(least - bottom, most - bottom, run, room)
    alpha = np.where((np.bincount(run)[run] > 1) & np.isfinite(split), split, near.alpha)
    best, fall = prove(problem, lowered(problem, near.alpha, beta), beta), np.inf
    for _ in range(_PROGRAMS):
        bound = prove(problem, lowered(problem, alpha, beta), beta)
        best = bound if bound.value > best.value else best
        priced = price(y, p, low, alpha, beta)
        at = local_places(priced.minima, fall)
        if at.size == 0 or best.value >= (1.0 - 2.0 * _ROOM) * loss:
            break
        v = priced.places[at[np.argsort(priced.minima[at], kind="stable")[:k]], None]
        level = 0.5 * p * (v - y) ** 2 - beta * v
        more = level < alpha
        owner, edge = np.nonzero(np.diff(np.pad(more, ((0, 0), (1, 1)))))
        cuts = operator(owner[::2], edge[::2], edge[1::2] - 1, more.shape, low)
        ahead = (0.5 * mass * (v - columns.values) ** 2).min(axis=1)
        rows = sparse.vstack([rows, sparse.hstack([cuts, ahead[:, None]])], "csc")
        right = np.append(right, ((low + (1.0 - low) * more) * level).sum(axis=1))
        alpha, fall = from_prefix(largest_share(rows, right)[:k], low), -TINY
    return best


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
