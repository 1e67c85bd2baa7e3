"""The mechanisms: each asks a solver, and returns a randomizer in exact integers."""

from labeldp_compile.mechanisms.build import require_feasible, solve
from labeldp_compile.mechanisms.problem import Problem, Solved

__all__ = ["Problem", "Solved", "require_feasible", "solve"]
