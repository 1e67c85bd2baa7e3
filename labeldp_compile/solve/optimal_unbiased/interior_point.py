"""The optimum over given intervals from a good guess: an interior point that knows the path.

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

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from labeldp_compile.solve.optimal_unbiased.bias_terms import BACK, bias_barrier, reach
from labeldp_compile.solve.optimal_unbiased.intervals import Floats
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.quadratics import (
    from_prefix,
    objective,
    per_label,
    quadratics,
    to_prefix,
)
from labeldp_compile.solve.optimal_unbiased.windows import Columns, Iterate

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
