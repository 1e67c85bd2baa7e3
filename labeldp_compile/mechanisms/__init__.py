"""The mechanisms: each asks a solver, and returns a randomizer in exact integers."""

from labeldp_compile.mechanisms.build import solve
from labeldp_compile.mechanisms.optimal_unbiased import require_feasible
from labeldp_compile.mechanisms.problem import Problem, Solved

__all__ = ["Problem", "Solved", "require_feasible", "solve"]
