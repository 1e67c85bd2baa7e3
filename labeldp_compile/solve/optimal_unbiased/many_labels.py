"""Many labels: level by level, each by an interior point that knows the path.

The interior point finds the optimum over given intervals from a good guess.

The dual is max g·x such that, for every interval,

    t_I(x) = ½W₂ − A − (W₁ + B)²/(2W) >= 0,

a concave function of the 2k prefix unknowns x. The multipliers of these inequalities are the
weights. Mehrotra's predictor and corrector, started from the prediction of a coarser level, takes 5
to 15 steps, each linear in the number of labels. A cone solver can use neither.

A column touches the prefix unknowns at its two ends and the total, so the matrix of a Newton step,

    Σ_I (A_I, C_I; C_I, B_I) ⊗ r_I·r_Iᵀ,   r_I the row of the operator,

has as many entries as there are columns. Intervals near the path of an optimum connect a label to
labels about one window away. So the graph is a rolled-up narrow strip, and its factor has a few
dozen entries per label at every ε (1.4 to 12 for the path itself, measured for 1,001 labels).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from labeldp_compile.observer import Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import (
    BACK,
    bias_barrier,
    from_prefix,
    objective,
    per_label,
    quadratics,
    reach,
    solve_cones,
    to_prefix,
)
from labeldp_compile.solve.optimal_unbiased.dual import lowered
from labeldp_compile.solve.optimal_unbiased.problem import (
    COARSEST,
    Columns,
    ExtraLine,
    Floats,
    Intervals,
    Iterate,
    Level,
    Program,
    as_windows,
    coarsen,
    extra_line,
    join,
    moved_along,
    neighbourhood,
    no_intervals,
    place_windows,
    placed_loss,
    predicted_means,
    window_columns,
)
from labeldp_compile.solve.optimal_unbiased.search import Found, Search

# The matrix is positive definite except for rounding: pivots are taken from the diagonal.
_STATIC = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
_RIDGE = 1e-14  # of the diagonal
_STEPS = 60
_GAP = 1e-6  # assumed gap of the start
_LEAST_SLACK = 1e-9  # of the start, if the loss is about 1/2
_STATIONARY = 1e-7  # residual of Σ g·S = 1 and Σ g·v·S = y that is always small enough
_RESIDUAL = 100.0  # the same residual in multiples of the wanted gap; windows correct it
_STUCK = 1e-3  # shorter steps make no progress
_PATIENCE = 3


class NewtonMatrix:
    """Positive definite systems with one sparsity pattern; the order of elimination is reused."""

    def __init__(self, operator: sparse.csr_matrix) -> None:
        """``operator`` [m, k] maps prefix unknowns to columns or labels; at most 3 a row."""
        m, k = operator.shape
        # Each row adds the products of its entries to cells of k x k: a linear map of the blocks.
        where, entry = np.zeros((m, 3), np.int64), np.zeros((m, 3))
        row = np.repeat(np.arange(m), np.diff(operator.indptr))
        slot = np.arange(operator.nnz) - operator.indptr[row]
        where[row, slot], entry[row, slot] = operator.indices, operator.data
        products = entry[:, :, None] * entry[:, None, :]
        owner, left, right = np.nonzero(products)
        touched = where[owner, left] * k + where[owner, right]
        diagonal = np.arange(k) * (k + 1)
        cells, cell = np.unique(np.concatenate([diagonal, touched]), return_inverse=True)
        self._sums = sparse.csr_matrix(
            (products[owner, left, right], (cell[k:], owner)), (cells.size, m)
        )
        # Only the pattern decides the order; the two unknowns of a label stay together.
        i, j = cells // k, cells % k
        plain = sparse.csc_matrix((np.where(i == j, k, 1.0), (i, j)), (k, k))
        place = splu(plain, permc_spec="MMD_AT_PLUS_A", **_STATIC).perm_c.astype(np.int64)
        self._unknowns = (np.argsort(place)[:, None] + [0, k]).ravel()
        rows, cols, entries = np.broadcast_arrays(
            2 * place[i, None, None] + [[0], [1]],
            2 * place[j, None, None] + [[0, 1]],
            3 * np.arange(cells.size)[:, None, None] + [[0, 1], [1, 2]],
        )
        self._entries = sparse.coo_matrix(
            (entries.ravel(), (rows.ravel(), cols.ravel())), (2 * k, 2 * k)
        ).tocsc()
        self._entries.sort_indices()
        self._cols = np.repeat(np.arange(2 * k), np.diff(self._entries.indptr))
        self._diagonal = np.flatnonzero(self._entries.indices == self._cols)

    def factored(self, a: Floats, c: Floats, b: Floats) -> Callable[[Floats], Floats]:
        """Factor the matrix with blocks (a, c; c, b) [m] each.

        Returns:
            Solves for a right side [2k] in the order (all of α, all of β).

        Raises:
            RuntimeError: it is singular.
        """
        values = (self._sums @ np.stack([a, c, b], axis=1)).ravel()[self._entries.data]
        diagonal = values[self._diagonal]
        root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        values *= root[self._entries.indices] * root[self._cols]
        scaled = self._matrix(values)
        ridged = values.copy()
        ridged[self._diagonal] += _RIDGE
        factor = splu(self._matrix(ridged), permc_spec="NATURAL", **_STATIC)

        def solve(right: Floats) -> Floats:
            right = root * right[self._unknowns]
            answer = factor.solve(right)
            answer += factor.solve(right - scaled @ answer)
            split = np.empty_like(right)
            split[self._unknowns] = root * answer
            return split

        return solve

    def _matrix(self, values: Floats) -> sparse.csc_matrix:
        pattern = self._entries
        return sparse.csc_matrix((values, pattern.indices, pattern.indptr), pattern.shape)


def solve_near(problem: Program, start: Iterate, tolerance: float) -> Iterate | None:
    """Solve over the intervals of a guess only.

    Args:
        problem: in units in which the loss is about 1/2; a penalty of bias must not be 0.
        start: a guess whose columns contain a feasible mechanism; its values are not used.
        tolerance: gap at which to stop.

    Returns:
        The last point, or None if rounding or a bad guess stopped the method.
    """
    with np.errstate(all="ignore"):
        return _Method(problem, start).run(tolerance)


class _Method:
    def __init__(self, problem: Program, start: Iterate) -> None:
        weights = start.columns.weights
        self._problem, self._intervals = problem, start.columns.intervals
        self._quad = quadratics(problem, self._intervals)
        self._across = self._quad.operator
        self._back = self._across.T.tocsr()
        self._gain = objective(problem)
        self._each = per_label(problem.k, problem.low)
        low = problem.low
        self._x = np.concatenate([to_prefix(start.alpha, low), to_prefix(start.beta, low)])
        touch, _ = self._quad.touch(self._x)
        centre = _GAP / weights.size
        slack = np.minimum(centre / np.maximum(weights, 1e-300), np.maximum(touch, _GAP))
        self._slack = np.maximum(np.maximum(touch, slack), _LEAST_SLACK)
        self._weights = np.maximum(weights, centre / self._slack)
        self._barrier = bias_barrier(problem, self._each @ self._x[problem.k :], centre)
        rows = [self._across, self._each] if self._barrier.curvature().size else [self._across]
        self._matrix = NewtonMatrix(sparse.vstack(rows, "csr"))

    def run(self, tolerance: float) -> Iterate | None:
        steps = stuck = 0
        most = max(_STATIONARY, _RESIDUAL * tolerance)
        while True:
            touch, values = self._quad.touch(self._x)
            gap = float(self._weights @ self._slack) + self._barrier.gap()
            unmet = self._gain - self._pull(self._weights, values)
            unmet[self._problem.k :] += self._each.T @ self._barrier.slope()
            if not (np.isfinite(gap) and np.isfinite(unmet).all()):
                return None
            if gap <= tolerance and float(np.abs(unmet).max()) <= most:
                break
            if steps == _STEPS:
                return None
            steps += 1
            try:
                length = self._advance(touch, values, unmet)
            except RuntimeError:  # singular
                return None
            stuck = stuck + 1 if length < _STUCK else 0
            if stuck == _PATIENCE:
                return None
        k, low = self._problem.k, self._problem.low
        return Iterate(
            Columns(self._intervals, self._weights, values),
            from_prefix(self._x[:k], low),
            from_prefix(self._x[k:], low),
            f"{steps} steps",
        )

    def _pull(self, weights: Floats, values: Floats) -> Floats:
        """[2k] the transposed Jacobian of −t, times weights."""
        return np.concatenate([self._back @ weights, self._back @ (weights * values)])

    def _advance(self, touch: Floats, values: Floats, unmet: Floats) -> float:
        """One step; returns its length."""
        k, weights, slack, barrier = (self._problem.k, self._weights, self._slack, self._barrier)
        ratio = weights / slack
        missed = touch - slack
        across = ratio * values
        curvature = barrier.curvature()
        none = np.zeros_like(curvature)
        solve = self._matrix.factored(
            np.concatenate([ratio, none]),
            np.concatenate([across, none]),
            np.concatenate([across * values + weights / self._quad.mass, curvature]),
        )

        def direction(target: Floats, aim: Floats) -> tuple[Floats, Floats, Floats]:
            """Moves of x, slacks and weights, which add ``target`` to slack times weight."""
            right = unmet - self._pull(target / slack - ratio * missed, values)
            right[k:] += self._each.T @ aim
            x = solve(right)
            fall = self._across @ x[:k] + values * (self._across @ x[k:])
            slacks = missed - fall
            return x, slacks, (target - weights * slacks) / slack

        def reaches(x: Floats, slacks: Floats, moves: Floats) -> tuple[float, float]:
            ours = barrier.move(self._each @ x[k:])
            return min(ours[0], reach(slack, slacks)), min(ours[1], reach(weights, moves))

        gap = float(weights @ slack) + barrier.gap()
        x, slacks, moves = direction(-weights * slack, barrier.aim(0.0, 0.0))
        primal, dual = reaches(x, slacks, moves)
        ahead = float((weights + dual * moves) @ (slack + primal * slacks))
        ahead += barrier.ahead(primal, dual)
        count = weights.size + barrier.size
        centre = gap / count * min(max(ahead / gap, 0.0) ** 3, 1.0)
        # A short predictor says little of the curvature (Colombo and Gondzio, 2008).
        trust = min(primal, dual) ** 2
        target = centre - weights * slack - trust * slacks * moves
        x, slacks, moves = direction(target, barrier.aim(centre, trust))
        primal, dual = (BACK * length for length in reaches(x, slacks, moves))
        barrier.step(primal, dual)
        self._x = self._x + primal * x
        self._slack = slack + primal * slacks
        self._weights = weights + dual * moves
        return max(primal, dual)


# Many labels: level by level from a coarse optimum, until the gap is certified.
#
# Each level starts an interior point from the level above it, close enough that it needs few steps
# (`solve_near`). A coarse solution is a solution for all labels up to second order, so each is
# also tried for all labels. With many labels, the certified gap is small enough long before the
# finest level.


_RADIUS = 1  # in labels, of the neighbourhood of a predicted path whose labels share windows
_COLD_RADIUS = 2  # if a cone program has no starting point
_ACCURACY = 1e-3  # of a level, relative to the gap above it, or on the last level to the tolerance
_ROUGH = 1e-9  # of a level at least: labels with little weight need it, and the next level them
_PRICINGS = 12  # rounds of further intervals on the last level, or on one that stalls
_STALLED = 0.5  # of the gap above it, that a level leaves; most leave a quarter
_TRIED = 500  # coarse labels from which a level may be the solution of all


@dataclass(frozen=True, eq=False)
class _Solution:
    """A solution of one level, in the problem's units: outputs, means [k] and multipliers [k]."""

    line: ExtraLine
    means: Floats
    alpha: Floats
    beta: Floats

    def scaled(self, unit: float, low: float) -> tuple[ExtraLine, Floats, Floats, Floats]:
        """This solution in other units."""
        line = extra_line(self.line.values / unit, self.line.weights, low)
        return line, self.means / unit, self.alpha / unit**2, self.beta / unit

    def point(self, unit: float, low: float) -> tuple[Iterate, Floats]:
        """Its columns and multipliers in other units, and the means."""
        line, means, alpha, beta = self.scaled(unit, low)
        return Iterate(window_columns(line, place_windows(line, means), low), alpha, beta), means


def descend(
    problem: Program, solve: Callable[[Program], Found], tolerance: float, observer: Observer
) -> Found:
    """Solve to a certified relative gap of ``tolerance``, or as close as rounding allows.

    Args:
        problem: of more than `COARSEST` labels; a penalty of bias must not be 0.
        solve: solves the coarsest level without a starting point.
        tolerance: relative gap. observer: gets a line per step.
    """
    levels = [Level(problem, np.arange(problem.k))]
    while levels[-1].problem.k > COARSEST:
        levels.append(coarsen(levels[-1].problem))
    coarsest = solve(levels[-1].problem)
    bound = coarsest.bound
    solution = _Solution(coarsest.line, coarsest.means, bound.alpha, bound.beta)
    means = predicted_means(levels[-1].problem, solution.means, problem.labels)
    unit = _unit(problem, solution.line, problem.allowed(means))
    search = Search(problem.scaled(unit), tolerance, observer)
    stalled = False
    for place in range(len(levels) - 2, -1, -1):
        fine = levels[place].problem
        tried = fine.k >= _TRIED or place == 0
        # A level reduces the gap by a small factor; only the last one closes it.
        ahead = tolerance if place == 0 else max(search.gap, tolerance)
        accuracy = min(_ROUGH, _ACCURACY * ahead)
        guess = _moved(levels[place + 1], fine, solution)
        solution = _solved(fine, guess, no_intervals(), accuracy, observer)
        if not tried or place == 0:
            continue
        whole = solution
        for above, below in reversed(list(pairwise(levels[: place + 1]))):
            whole = _moved(below, above.problem, whole)
        line, means, alpha, beta = whole.scaled(unit, problem.low)
        before = search.gap
        if stalled:
            alpha = lowered(search.problem, alpha, beta)
        search.offer_line(line, means, alpha, beta)
        if search.gap <= tolerance:
            return search.found(unit)
        if search.gap > _STALLED * before:  # intervals are missing, and finer levels lack them, too
            stalled = True
            own = _unit(fine, solution.line, solution.means)
            level = Search(fine.scaled(own), tolerance, observer)
            solution = _priced(fine, level, own, solution, accuracy)
    solution = _priced(problem, search, unit, solution, accuracy)
    if search.gap > tolerance:
        search.finish(solution.point(unit, problem.low)[0])
        search.tighten()
    return search.found(unit)


def _priced(
    problem: Program, search: Search, unit: float, solution: _Solution, accuracy: float
) -> _Solution:
    """Price and add intervals, until the gap is certified or nothing helps."""
    further = no_intervals()
    for turn in range(_PRICINGS + 1):
        point, means = solution.point(unit, problem.low)
        search.offer(point, means)
        new, _ = search.missing(point, True)
        if search.gap <= search.tolerance or turn == _PRICINGS or not len(new):
            break
        further = join(problem.k, further, neighbourhood(new, problem.k, _RADIUS))
        solution = _solved(problem, solution, further, accuracy, search.observer)
    return solution


def _moved(coarse: Level, fine: Program, solution: _Solution) -> _Solution:
    """A coarse solution as a guess of a finer one."""
    means = fine.allowed(predicted_means(coarse.problem, solution.means, fine.labels))
    alpha, beta = moved_along(coarse.problem, fine, coarse.parent, solution.alpha, solution.beta)
    return _Solution(solution.line, means, alpha, beta)


def _unit(problem: Program, line: ExtraLine, means: Floats) -> float:
    """The unit in which the objective is about 1/2."""
    starts = place_windows(line, means)
    loss = placed_loss(line, starts, problem.labels, problem.prior, problem.low)
    return float(np.sqrt(2.0 * (loss + problem.penalty(means))))


def _solved(
    fine: Program, guess: _Solution, further: Intervals, accuracy: float, observer: Observer
) -> _Solution:
    """Solve a level from a guess, over the intervals near its path and further ones."""
    k, low = fine.k, fine.low
    unit = _unit(fine, guess.line, guess.means)
    problem = fine.scaled(unit)
    start, _ = guess.point(unit, low)
    path = start.columns
    # Under a budget labels may share a window, and both its ends move at once.
    close = neighbourhood(path.intervals, k, _RADIUS, ends=1 if fine.bias.unbiased else 2)
    start = replace(start, columns=path.among(join(k, close, further), k))
    found = solve_near(problem, start, accuracy)
    if found is None:
        wide = join(k, neighbourhood(path.intervals, k, _COLD_RADIUS), further)
        found = solve_cones(problem, wide, accuracy)
    observer.step(f"level of {k} labels: {len(found.columns)} intervals, {found.how}")
    columns, means = as_windows(problem, found.columns)
    line = extra_line(columns.values * unit, columns.weights, low)
    return _Solution(line, means * unit, found.alpha * unit**2, found.beta * unit)
