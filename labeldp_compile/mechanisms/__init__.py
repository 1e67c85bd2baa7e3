"""The mechanisms: each asks a solver, and returns a randomizer in exact integers."""

from labeldp_compile.mechanisms.build import build_randomizer

__all__ = ["build_randomizer"]
