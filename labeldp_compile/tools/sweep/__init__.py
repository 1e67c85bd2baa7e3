"""Mechanisms side by side over a range of ε, each number from a verified artifact."""

from labeldp_compile.tools.sweep.candidates import Candidates, find_candidates, frontier_candidates
from labeldp_compile.tools.sweep.measure import Missing, Point, measure
from labeldp_compile.tools.sweep.sweep import (
    DEFAULT_EPSILONS,
    Sweep,
    exact_epsilons,
    run_sweep,
    sweep_prior,
    sweep_spec,
)

__all__ = [
    "DEFAULT_EPSILONS",
    "Candidates",
    "Missing",
    "Point",
    "Sweep",
    "exact_epsilons",
    "find_candidates",
    "frontier_candidates",
    "measure",
    "run_sweep",
    "sweep_prior",
    "sweep_spec",
]
