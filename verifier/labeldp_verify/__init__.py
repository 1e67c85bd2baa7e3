"""The verifier: re-derives every provable claim of an artifact from the file alone.

It stands alone: no solver, no prior, no rounding, no YAML. Read in this order: ``kernel.py`` (the
bytes of a file → ε, with Python alone), ``steps.py`` (what is checked), ``forms/`` (the integers
that decide every probability), ``decode/`` (the integers → forms), ``analysis/`` and ``claims/``
(integers → claims, a file each), ``graph/`` (integers → file, rebuilt and compared byte for byte)
and ``execute.py`` (the words on which the running graph is tried). Outside of what decides stand
``reading/`` (what private labels are good for) and ``console/`` (reports and the command).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeldp_verify.budget import DEFAULT_BUDGET, OWN_FILES, Budget, TooLargeError
    from labeldp_verify.checks import Check
    from labeldp_verify.claims import Certificate
    from labeldp_verify.console.report import Report, VerificationError
    from labeldp_verify.console.verification import (
        check_bytes,
        check_file,
        read_artifact,
        verify_file,
    )
    from labeldp_verify.steps import SpecCheck

__all__ = [
    "DEFAULT_BUDGET",
    "OWN_FILES",
    "Budget",
    "Certificate",
    "Check",
    "Report",
    "SpecCheck",
    "TooLargeError",
    "VerificationError",
    "check_bytes",
    "check_file",
    "read_artifact",
    "verify_file",
]
_HOMES = {
    "budget": ("DEFAULT_BUDGET", "OWN_FILES", "Budget", "TooLargeError"),
    "claims": ("Certificate",),
    "checks": ("Check",),
    "console.report": ("Report", "VerificationError"),
    "steps": ("SpecCheck",),
    "console.verification": ("check_bytes", "check_file", "read_artifact", "verify_file"),
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are used: onnx and onnxruntime take half a second."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
