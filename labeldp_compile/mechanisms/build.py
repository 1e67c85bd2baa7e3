"""From a mechanism's name to its builder.

The modules are loaded when a spec names them: the solvers of some take half a second to import.
"""

from __future__ import annotations

import importlib
from fractions import Fraction
from types import ModuleType

from labeldp_verify.forms import Domain

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.spec.mechanism import Mechanism

_MODULES = {
    "randomized_response": "randomized_response",
    "rr_top_k": "rr_top_k",
    "rr_with_prior": "rr_top_k",
    "rr_on_bins": "rr_on_bins",
    "optimal_unbiased": "optimal_unbiased",
    "debiased_rr": "debiased_rr",
    "laplace": "additive_noise",
    "staircase": "additive_noise",
    "exponential": "exponential",
}
_CHECKED = ("optimal_unbiased", "laplace", "staircase", "exponential")


def solve(problem: Problem) -> Solved:
    """The ε-DP randomizer that the problem's mechanism names; ValueError if there is none."""
    solved: Solved = _module(problem.mechanism).build(problem)
    return solved


def rehearse(problem: Problem) -> Solved:
    """A randomizer of the same form on the same domain in closed form; ValueError if none is.

    It is the mechanism's own, or where that takes a solver, one that needs none.
    """
    module = _module(problem.mechanism)
    solved: Solved = getattr(module, "rehearse", module.build)(problem)
    return solved


def require_feasible(mechanism: Mechanism, domain: Domain, loss: str, epsilon: Fraction) -> None:
    """Raise ValueError if ``solve`` could not succeed whatever the prior; touches no label."""
    if mechanism.kind in _CHECKED:
        _module(mechanism).require_feasible(mechanism, domain, loss, epsilon)


def _module(mechanism: Mechanism) -> ModuleType:
    return importlib.import_module(f"labeldp_compile.mechanisms.{_MODULES[mechanism.kind]}")
