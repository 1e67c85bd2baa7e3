"""From a mechanism's name to its builder."""

from __future__ import annotations

from collections.abc import Callable

from labeldp_compile.mechanisms import optimal_unbiased, randomized_response, rr_on_bins
from labeldp_compile.mechanisms.problem import Problem, Solved

_BUILDERS: dict[str, Callable[[Problem], Solved]] = {
    "randomized_response": randomized_response.build,
    "rr_on_bins": rr_on_bins.build,
    "optimal_unbiased": optimal_unbiased.build,
}


def solve(problem: Problem) -> Solved:
    """The ε-DP randomizer that the problem's mechanism names; ValueError if there is none."""
    return _BUILDERS[problem.mechanism.kind](problem)
