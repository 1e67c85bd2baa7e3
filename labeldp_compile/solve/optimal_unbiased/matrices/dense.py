"""Dense matrices, by numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints


@dataclass(frozen=True, eq=False)
class Columns:
    """A matrix in compressed columns, with scipy's names for its parts."""

    data: Floats
    indices: Ints
    indptr: Ints
    shape: tuple[int, int]
    has_canonical_format: bool = True  # sorted, and no place twice

    @property
    def nnz(self) -> int:
        """How many entries are kept."""
        return self.data.size


def entries(data: Floats, rows: Ints, cols: Ints, shape: tuple[int, int]) -> Floats:
    """The matrix of these entries, summed where a place is named twice."""
    matrix = np.zeros(shape)
    np.add.at(matrix, (rows, cols), data)
    return matrix


def zeros(rows: int, cols: int) -> Floats:
    """Nothing but zeros."""
    return np.zeros((rows, cols))


def diagonal(values: Floats) -> Floats:
    """[n, n] with these values on the diagonal."""
    return np.diag(values)


def blocks(parts: Sequence[Sequence[Floats | None]]) -> Floats:
    """Rows of blocks, where None is as many zeros as fit."""
    heights = [next(part.shape[0] for part in row if part is not None) for row in parts]
    widths = [
        next(part.shape[1] for part in column if part is not None)
        for column in zip(*parts, strict=True)
    ]
    return np.block(
        [
            [
                np.zeros((height, width)) if part is None else part
                for part, width in zip(row, widths, strict=True)
            ]
            for row, height in zip(parts, heights, strict=True)
        ]
    )


def scaled(factors: Floats, matrix: Floats) -> Floats:
    """Each row times its factor."""
    return np.asarray(factors[:, None] * matrix)


def by_columns(matrix: Floats) -> Columns:
    """Compressed columns, without zeros."""
    cols, rows = np.nonzero(matrix.T)
    indptr = np.searchsorted(cols, np.arange(matrix.shape[1] + 1))
    return Columns(matrix[rows, cols], rows, indptr, (matrix.shape[0], matrix.shape[1]))


def solver(matrix: Floats) -> Callable[[Floats], Floats]:
    """Solve for right sides. Raises RuntimeError if the matrix is singular."""

    def solve(right: Floats) -> Floats:
        try:
            return np.asarray(np.linalg.solve(matrix, right))
        except np.linalg.LinAlgError as error:
            raise RuntimeError("exactly singular") from error

    return solve
