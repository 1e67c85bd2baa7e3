"""Sparse matrices, by scipy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scipy import sparse
from scipy.sparse.linalg import splu

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints


def entries(data: Floats, rows: Ints, cols: Ints, shape: tuple[int, int]) -> sparse.csr_matrix:
    """The matrix of these entries, summed where a place is named twice."""
    return sparse.coo_matrix((data, (rows, cols)), shape=shape).tocsr()


def zeros(rows: int, cols: int) -> sparse.csr_matrix:
    """Nothing but zeros."""
    return sparse.csr_matrix((rows, cols))


def diagonal(values: Floats) -> sparse.csr_matrix:
    """[n, n] with these values on the diagonal."""
    return sparse.diags(values, format="csr")


def blocks(parts: Sequence[Sequence[sparse.csr_matrix | None]]) -> sparse.csr_matrix:
    """Rows of blocks, where None is as many zeros as fit."""
    return sparse.bmat(parts, format="csr")


def scaled(factors: Floats, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Each row times its factor."""
    return sparse.csr_matrix(sparse.diags(factors) @ matrix)


def by_columns(matrix: sparse.csr_matrix) -> sparse.csc_matrix:
    """Compressed columns."""
    return matrix.tocsc()


def solver(matrix: sparse.csr_matrix) -> Callable[[Floats], Floats]:
    """Factor a square matrix, to solve for right sides. Raises RuntimeError if it is singular."""
    solve: Callable[[Floats], Floats] = splu(matrix.tocsc()).solve
    return solve
