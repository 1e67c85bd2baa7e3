"""A declarative compiler for label differential privacy.

These functions do what the commands of the same names do; everything else is internal. They, and
the types that they return, are loaded when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_verify import Budget as Budget
    from labeldp_verify import Report as Report
    from labeldp_verify import TooLargeError as TooLargeError
    from labeldp_verify import VerificationError as VerificationError

    from labeldp_compile.api import audit as audit
    from labeldp_compile.api import choose as choose
    from labeldp_compile.api import compile_spec as compile_spec
    from labeldp_compile.api import estimate as estimate
    from labeldp_compile.api import load_spec as load_spec
    from labeldp_compile.api import plan as plan
    from labeldp_compile.api import sweep as sweep
    from labeldp_compile.api import verify as verify
    from labeldp_compile.assembly import Compiled as Compiled
    from labeldp_compile.errors import BudgetError as BudgetError
    from labeldp_compile.errors import DataError as DataError
    from labeldp_compile.errors import InputError as InputError
    from labeldp_compile.errors import SpecError as SpecError
    from labeldp_compile.ledger.account import OverBudgetError as OverBudgetError
    from labeldp_compile.planning import Plan as Plan
    from labeldp_compile.spec import Spec as Spec
    from labeldp_compile.tools.audit.report import AuditReport as AuditReport
    from labeldp_compile.tools.choose.choose import Choice as Choice
    from labeldp_compile.tools.estimate.aggregates import Aggregates as Aggregates
    from labeldp_compile.tools.sweep.sweep import Sweep as Sweep

_HOMES = {
    "labeldp_compile.api": (
        *("audit", "choose", "compile_spec", "estimate", "load_spec", "plan", "sweep", "verify"),
    ),
    "labeldp_compile.errors": ("BudgetError", "DataError", "InputError", "SpecError"),
    "labeldp_compile.ledger.account": ("OverBudgetError",),
    "labeldp_compile.assembly": ("Compiled",),
    "labeldp_compile.planning": ("Plan",),
    "labeldp_compile.spec": ("Spec",),
    "labeldp_compile.tools.audit.report": ("AuditReport",),
    "labeldp_compile.tools.choose.choose": ("Choice",),
    "labeldp_compile.tools.estimate.aggregates": ("Aggregates",),
    "labeldp_compile.tools.sweep.sweep": ("Sweep",),
    "labeldp_verify": ("Budget", "Report", "TooLargeError", "VerificationError"),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> object:
    """The public names."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
