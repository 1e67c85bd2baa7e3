"""A declarative compiler for label differential privacy.

These functions do what the commands of the same names do; everything else is internal. They, and
the types that they return, are loaded when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_verify import Budget, Report, TooLargeError, VerificationError

    from labeldp_compile.api import (
        audit,
        choose,
        compile_spec,
        estimate,
        load_spec,
        plan,
        sweep,
        verify,
    )
    from labeldp_compile.assembly import Compiled
    from labeldp_compile.errors import BudgetError, DataError, InputError, SpecError
    from labeldp_compile.ledger import OverBudgetError
    from labeldp_compile.planning import Plan
    from labeldp_compile.spec import Spec
    from labeldp_compile.tools.audit.report import AuditReport
    from labeldp_compile.tools.choose.choose import Choice
    from labeldp_compile.tools.estimate.aggregates import Aggregates
    from labeldp_compile.tools.sweep.sweep import Sweep

__all__ = [
    "Aggregates",
    "AuditReport",
    "Budget",
    "BudgetError",
    "Choice",
    "Compiled",
    "DataError",
    "InputError",
    "OverBudgetError",
    "Plan",
    "Report",
    "Spec",
    "SpecError",
    "Sweep",
    "TooLargeError",
    "VerificationError",
    "audit",
    "choose",
    "compile_spec",
    "estimate",
    "load_spec",
    "plan",
    "sweep",
    "verify",
]
_HOMES = {
    "labeldp_compile.api": (
        *("audit", "choose", "compile_spec", "estimate", "load_spec", "plan", "sweep", "verify"),
    ),
    "labeldp_compile.errors": ("BudgetError", "DataError", "InputError", "SpecError"),
    "labeldp_compile.ledger": ("OverBudgetError",),
    "labeldp_compile.pipeline": ("Compiled",),
    "labeldp_compile.planning": ("Plan",),
    "labeldp_compile.spec": ("Spec",),
    "labeldp_compile.tools.audit.report": ("AuditReport",),
    "labeldp_compile.tools.choose.choose": ("Choice",),
    "labeldp_compile.tools.estimate.aggregates": ("Aggregates",),
    "labeldp_compile.tools.sweep.sweep": ("Sweep",),
    "labeldp_verify": ("Budget", "Report", "TooLargeError", "VerificationError"),
}


def __getattr__(name: str) -> object:
    """The public names."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
