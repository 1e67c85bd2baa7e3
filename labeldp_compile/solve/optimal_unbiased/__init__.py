"""The optimal unbiased ε-DP label randomizer for squared loss over real outputs, with its proof."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp_compile.solve.optimal_unbiased.problem import BiasBudget

if TYPE_CHECKING:
    from labeldp_compile.solve.optimal_unbiased.lp_grid import (
        GridSolution,
        feasible_outputs,
        solve_lp_grid,
    )
    from labeldp_compile.solve.optimal_unbiased.optimum import (
        UnbiasedSolution,
        solve_optimal_unbiased,
    )

__all__ = [
    "BiasBudget",
    "GridSolution",
    "UnbiasedSolution",
    "feasible_outputs",
    "solve_lp_grid",
    "solve_optimal_unbiased",
]
_HOMES = {
    "lp_grid": ("GridSolution", "feasible_outputs", "solve_lp_grid"),
    "optimum": ("UnbiasedSolution", "solve_optimal_unbiased"),
}


def __getattr__(name: str) -> Any:
    """The public names, each with the solver that it needs: Clarabel, or HiGHS and scipy."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
