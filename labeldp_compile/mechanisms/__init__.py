"""The mechanisms, and the list of them: a name, the file and the class.

The list holds text only, so that a command can list names without importing a solver. To add a
mechanism, add a file here and a line below.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_compile.mechanisms.mechanism import Mechanism

_CLASSES = {
    "randomized_response": ("randomized_response", "RandomizedResponse"),
    "subset_selection": ("subset_selection", "SubsetSelection"),
    "rr_top_k": ("randomized_response", "RRTopK"),
    "rr_with_prior": ("randomized_response", "RRWithPrior"),
    "least_cost": ("least_cost", "LeastCost"),
    "rr_on_bins": ("rr_on_bins", "RRonBins"),
    "optimal_unbiased": ("optimal_unbiased", "OptimalUnbiased"),
    "debiased_rr": ("randomized_response", "DebiasedRR"),
    "laplace": ("additive", "Laplace"),
    "staircase": ("additive", "Staircase"),
    "exponential": ("exponential", "Exponential"),
}
KINDS = tuple(_CLASSES)
"""The names of the mechanisms, in the order in which they are listed."""
BY_DEFAULT = tuple(kind for kind in KINDS if kind != "rr_top_k")
"""The names that are offered by default: a k cannot be chosen before a first sweep."""


def mechanism_class(kind: str) -> type[Mechanism]:
    """The class of a mechanism."""
    module, name = _CLASSES[kind]
    return getattr(import_module(f"labeldp_compile.mechanisms.{module}"), name)


@cache
def all_mechanisms() -> tuple[type[Mechanism], ...]:
    """The classes of all mechanisms."""
    return tuple(map(mechanism_class, KINDS))
