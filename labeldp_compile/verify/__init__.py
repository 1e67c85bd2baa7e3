"""The verifier: re-derives every provable claim of an artifact from the file alone.

It imports no solver, no prior and no rounding. From the compiler it takes the records of the exact
forms and the pure graph writer, and it checks that writer by running the graph. Read in this order:
``steps.py`` (what is checked), ``form.py`` (what is asked of every form), then for each form, in
its own folder, ``decode.py`` (file → integers), ``derive.py`` (integers → claims) and
``execute.py`` (the words on which the running graph is tried).
"""

from labeldp_compile.verify.budget import DEFAULT_BUDGET, OWN_FILES, Budget, TooLargeError
from labeldp_compile.verify.report import Check, Report, VerificationError
from labeldp_compile.verify.steps import check_bytes, check_file, read_artifact, verify_file

__all__ = [
    "DEFAULT_BUDGET",
    "OWN_FILES",
    "Budget",
    "Check",
    "Report",
    "TooLargeError",
    "VerificationError",
    "check_bytes",
    "check_file",
    "read_artifact",
    "verify_file",
]
