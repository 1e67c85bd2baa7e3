"""The mechanisms: each asks a solver, and returns a randomizer in exact integers."""

from labeldp_compile.mechanisms.build import rehearse, require_feasible, solve
from labeldp_compile.mechanisms.problem import Problem, Solved

__all__ = ["Problem", "Solved", "rehearse", "require_feasible", "solve"]
