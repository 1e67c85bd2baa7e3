"""The mechanisms, one per file, and the list of them: a name, and the class in its file.

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
    "randomized_response": "RandomizedResponse",
    "subset_selection": "SubsetSelection",
    "rr_top_k": "RRTopK",
    "rr_with_prior": "RRWithPrior",
    "rr_on_bins": "RRonBins",
    "optimal_unbiased": "OptimalUnbiased",
    "debiased_rr": "DebiasedRR",
    "laplace": "Laplace",
    "staircase": "Staircase",
    "exponential": "Exponential",
}
KINDS = tuple(_CLASSES)
"""The names of the mechanisms, in the order in which they are listed."""
BY_DEFAULT = tuple(kind for kind in KINDS if kind != "rr_top_k")
"""The names that are offered by default: a k cannot be chosen before a first sweep."""


def mechanism_class(kind: str) -> type[Mechanism]:
    """The class of a mechanism, from the file of its name."""
    module = import_module(f"labeldp_compile.mechanisms.{kind}")
    return getattr(module, _CLASSES[kind])


@cache
def all_mechanisms() -> tuple[type[Mechanism], ...]:
    """The classes of all mechanisms."""
    return tuple(map(mechanism_class, KINDS))
