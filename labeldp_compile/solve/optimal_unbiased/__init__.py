"""The optimal unbiased ε-DP label randomizer for squared loss over real outputs, with its proof."""

from labeldp_compile.solve.optimal_unbiased.lp_grid import (
    GridSolution,
    feasible_outputs,
    solve_lp_grid,
)
from labeldp_compile.solve.optimal_unbiased.optimum import UnbiasedSolution, solve_optimal_unbiased
from labeldp_compile.solve.optimal_unbiased.problem import BiasBudget

__all__ = [
    "BiasBudget",
    "GridSolution",
    "UnbiasedSolution",
    "feasible_outputs",
    "solve_lp_grid",
    "solve_optimal_unbiased",
]
