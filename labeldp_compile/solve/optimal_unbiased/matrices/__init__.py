"""The matrices of the solver: sparse ones, or dense ones where labels are few.

Few labels are solved for in less time than it takes to import scipy, and ``labeldp plan`` solves
whenever it is asked. Both kinds make numpy's ``@``, ``.T``, slices of rows and sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints
from labeldp_compile.solve.optimal_unbiased.problem import Problem

FEW_LABELS = 64
Matrix = Any
"""[rows, columns] of one kind."""


class Matrices(Protocol):
    """How one kind of matrices is made, and what is done with them."""

    def entries(self, data: Floats, rows: Ints, cols: Ints, shape: tuple[int, int]) -> Matrix:
        """The matrix of these entries, summed where a place is named twice."""

    def zeros(self, rows: int, cols: int) -> Matrix:
        """Nothing but zeros."""

    def diagonal(self, values: Floats) -> Matrix:
        """[n, n] with these values on the diagonal."""

    def blocks(self, parts: Sequence[Sequence[Matrix | None]]) -> Matrix:
        """Rows of blocks, where None is as many zeros as fit; kept by rows."""

    def scaled(self, factors: Floats, matrix: Matrix) -> Matrix:
        """Each row times its factor."""

    def by_columns(self, matrix: Matrix) -> Any:
        """As Clarabel takes it: compressed columns."""

    def solver(self, matrix: Matrix) -> Callable[[Floats], Floats]:
        """Factor a square matrix, to solve for right sides. Raises RuntimeError if singular."""


def matrices_for(problem: Problem) -> Matrices:
    """The kind for a problem. With a bias budget it is sparse, as few of those are planned."""
    kind = "dense" if problem.k <= FEW_LABELS and problem.bias.unbiased else "sparse"
    return cast(Matrices, import_module(f"{__name__}.{kind}"))
