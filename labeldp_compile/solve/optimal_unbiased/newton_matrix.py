"""The matrix of an interior point's Newton steps: assembled on a fixed pattern, factored sparsely.

A column touches the prefix unknowns at its two ends and the total, so the matrix

    Σ_I (A_I, C_I; C_I, B_I) ⊗ r_I·r_Iᵀ,   r_I the row of the operator,

has as many entries as there are columns. Intervals near the path of an optimum tie a label to those
about one window away: the graph is a narrow strip rolled up, and its factor stays a few dozen
entries a label at every ε (1.4 to 12 for the path itself, measured for 1,001 labels).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints

# The matrix is positive definite, but for rounding: pivots are taken from the diagonal.
_STATIC = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
_RIDGE = 1e-14  # of the diagonal


class NewtonMatrix:
    """Positive definite systems of one sparsity pattern; the order of elimination is kept."""

    def __init__(self, operator: sparse.csr_matrix) -> None:
        """``operator`` [m, k] maps prefix unknowns to columns or labels; at most 3 a row."""
        m, k = operator.shape
        self._size = 2 * k
        # At most three entries a row; absent ones are zeros on the diagonal.
        where = np.zeros((m, 3), np.int64)
        entry = np.zeros((m, 3))
        slot = np.arange(operator.nnz) - np.repeat(operator.indptr[:-1], np.diff(operator.indptr))
        row = np.repeat(np.arange(m), np.diff(operator.indptr))
        where[row, slot], entry[row, slot] = operator.indices, operator.data
        self._pairs = (entry[:, :, None] * entry[:, None, :]).reshape(m, 9)
        cell = (where[:, :, None] * k + where[:, None, :]).reshape(m, 9)
        cells, self._cell = np.unique(cell, return_inverse=True)
        self._cell = self._cell.reshape(m, 9)
        self._cells = cells.size
        i, j = cells // k, cells % k
        # Unknowns in pairs, the two of one label beside each other.
        self._rows = np.concatenate([2 * i, 2 * i, 2 * i + 1, 2 * i + 1])
        self._cols = np.concatenate([2 * j, 2 * j + 1, 2 * j, 2 * j + 1])
        self._together = np.arange(2 * k).reshape(2, k).T.ravel()
        self._order: Ints | None = None

    def factored(self, a: Floats, c: Floats, b: Floats) -> Callable[[Floats], Floats]:
        """Factor the matrix with blocks (a, c; c, b) [m] each.

        Returns:
            Solves for a right side [2k] in the order (all of α, all of β).

        Raises:
            RuntimeError: it is singular.
        """
        blocks = [
            np.bincount(self._cell.ravel(), (self._pairs * part[:, None]).ravel(), self._cells)
            for part in (a, c, b)
        ]
        values = np.concatenate([blocks[0], blocks[1], blocks[1], blocks[2]])
        matrix = sparse.coo_matrix((values, (self._rows, self._cols)), (self._size, self._size))
        matrix = matrix.tocsr()
        diagonal = matrix.diagonal()
        root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scale = sparse.diags(root)
        scaled = (scale @ matrix @ scale + _RIDGE * sparse.identity(self._size)).tocsr()
        factor, order = self._factor(scaled)
        together = self._together

        def once(right: Floats) -> Floats:
            answer = np.empty_like(right)
            answer[order] = factor.solve((root * right)[order])
            return np.asarray(root * answer)

        def solve(right: Floats) -> Floats:
            right = right[together]
            answer = once(right)
            answer += once(right - matrix @ answer)
            split = np.empty_like(answer)
            split[together] = answer
            return split

        return solve

    def _factor(self, scaled: sparse.csr_matrix) -> tuple[SuperLU, Ints]:
        if self._order is None:
            first = splu(scaled.tocsc(), permc_spec="MMD_AT_PLUS_A", **_STATIC)
            self._order = np.argsort(first.perm_c).astype(np.int64)
        order = self._order
        return splu(scaled[order][:, order].tocsc(), permc_spec="NATURAL", **_STATIC), order
