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
from scipy.sparse.linalg import splu

from labeldp_compile.solve.optimal_unbiased.intervals import Floats

# The matrix is positive definite, but for rounding: pivots are taken from the diagonal.
_STATIC = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
_RIDGE = 1e-14  # of the diagonal


class NewtonMatrix:
    """Positive definite systems of one sparsity pattern; the order of elimination is kept."""

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
        # The pattern alone decides the order; the two unknowns of a label stay together.
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
