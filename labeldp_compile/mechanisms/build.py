"""From a mechanism's name to its builder."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from labeldp_compile.mechanisms import (
    additive_noise,
    debiased_rr,
    exponential,
    optimal_unbiased,
    randomized_response,
    rr_on_bins,
    rr_top_k,
)
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.randomizer import Domain
from labeldp_compile.spec.mechanism import Mechanism

_BUILDERS: dict[str, Callable[[Problem], Solved]] = {
    "randomized_response": randomized_response.build,
    "rr_top_k": rr_top_k.build,
    "rr_with_prior": rr_top_k.build,
    "rr_on_bins": rr_on_bins.build,
    "optimal_unbiased": optimal_unbiased.build,
    "debiased_rr": debiased_rr.build,
    "laplace": additive_noise.build,
    "staircase": additive_noise.build,
    "exponential": exponential.build,
}
_CHECKS: tuple[Callable[[Mechanism, Domain, str, Fraction], None], ...] = (
    optimal_unbiased.require_feasible,
    additive_noise.require_feasible,
    exponential.require_feasible,
)


def solve(problem: Problem) -> Solved:
    """The ε-DP randomizer that the problem's mechanism names; ValueError if there is none."""
    return _BUILDERS[problem.mechanism.kind](problem)


def require_feasible(mechanism: Mechanism, domain: Domain, loss: str, epsilon: Fraction) -> None:
    """Raise ValueError if ``solve`` could not succeed whatever the prior; touches no label."""
    for check in _CHECKS:
        check(mechanism, domain, loss, epsilon)
