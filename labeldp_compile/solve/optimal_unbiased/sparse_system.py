"""Solve a sparse system of equations: few unknowns as LAPACK does, many as SuperLU does."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.intervals import Floats

_FEW = 400  # unknowns that are solved in the time in which scipy.sparse.linalg would load


def solve_system(system: sparse.csc_matrix, right: Floats) -> Floats | None:
    """The solution [n] of system @ x = right, refined once; None if the system is singular."""
    answer: Floats
    if right.size <= _FEW:
        dense = system.toarray()
        try:
            answer = np.linalg.solve(dense, right)
            answer += np.linalg.solve(dense, right - dense @ answer)
        except np.linalg.LinAlgError:
            return None
        return answer
    from scipy.sparse.linalg import splu  # noqa: PLC0415  # a tenth of a second

    try:
        factor = splu(system)
    except RuntimeError:  # exactly singular
        return None
    answer = factor.solve(right)
    answer += factor.solve(right - system @ answer)
    return answer
