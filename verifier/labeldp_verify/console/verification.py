"""From a file to a report: every step of ``steps.py``, until one fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.analysis.analysis import TooMuchWorkError
from labeldp_verify.artifact import Artifact
from labeldp_verify.budget import DEFAULT_BUDGET, Budget, check_deadline, naming, spending
from labeldp_verify.checks import Check, CheckFailedError
from labeldp_verify.console.limits import Limits
from labeldp_verify.console.report import Report
from labeldp_verify.decode import DecodeError
from labeldp_verify.errors import InputError, read_at_most
from labeldp_verify.steps import MAX_FILE_BYTES, SpecCheck, Verification

if TYPE_CHECKING:  # cryptography is loaded for those who bring a key
    from labeldp_verify.signature import Signed


def verify_file(
    path: Path,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """Verify an artifact; raises unless every check holds.

    Args:
        path: the ONNX file; nothing in it is trusted.
        spec: says what in a certificate does not fit a spec (``labeldp verify --spec``).
        signed: what the file is to be signed with (``signature.read_signed_beside``).
        budget: processor seconds and bytes at most; by default 20 s and 2 GB.
        limits: further conditions on the file.

    Returns:
        The report: the numbered checks of ``steps.py``, and the certificate.

    Raises:
        VerificationError: a check failed; its ``report`` says which.
        InputError: the file is missing or cannot be read; TooLargeError, one of them, if checking
            it would exceed the budget.

    >>> from labeldp_compile import compile_spec  # another distribution
    >>> from pathlib import Path
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> from labeldp_verify import verify_file
    >>> verify_file(path).certificate.privacy.epsilon_label
    1.0
    """
    return check_file(path, spec, signed, budget, limits).require()


def check_file(
    path: Path,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """The report on an artifact, for any contents of the file; for arguments see ``verify_file``.

    Raises InputError if the file is missing or cannot be read, and TooLargeError, one of them, if
    checking it would exceed the budget.

    >>> from pathlib import Path
    >>> from labeldp_verify import check_file
    >>> Path("no-artifact.onnx").write_bytes(b"no artifact")
    11
    >>> report = check_file(Path("no-artifact.onnx"))
    >>> report.ok, report.checks[-1].name
    (False, 'model')
    """
    with naming(path):
        return check_bytes(read_artifact(path), spec, signed, budget, limits)


def check_bytes(
    data: bytes,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
    *,
    run_graph: bool = True,
) -> Report:
    """The report on the bytes of an artifact.

    Without ``run_graph`` the check ``execution`` is missing from it: every integer is checked, and
    onnxruntime is not.

    Raises TooLargeError, an InputError, if checking the file would exceed the budget. An InputError
    of ``spec`` is passed on.

    >>> from labeldp_verify import check_bytes
    >>> check_bytes(b"no artifact").ok
    False
    """
    with spending(budget):
        return _report(Verification(data, spec, signed, limits, run_graph=run_graph))


def _report(verification: Verification) -> Report:
    checks: list[Check] = []
    for name, step in verification.steps():
        try:
            checks.append(Check(name, True, step()))
        except (InputError, MemoryError):  # the spec, not the file; or too much work
            raise
        except (CheckFailedError, DecodeError, TooMuchWorkError) as error:
            checks.append(Check(name, False, str(error)))
        except Exception as error:  # any error that a hostile file causes is a failed check
            checks.append(Check(name, False, f"cannot be checked ({type(error).__name__})"))
        if not checks[-1].ok:
            break
        check_deadline()
    certificate = getattr(verification, "certificate", None)
    artifact = None
    if checks[-1].ok:
        held = verification.integers
        artifact = Artifact(
            held.label, held.groups, held.tables, verification.certificate, verification.digest
        )
    return Report(tuple(checks), certificate, artifact, verification.digest)


def read_artifact(path: Path) -> bytes:
    """The bytes of a file, at most one more than an artifact may have; InputError if unreadable.

    >>> from pathlib import Path
    >>> from labeldp_verify import read_artifact
    >>> Path("no-artifact.onnx").write_bytes(b"no artifact")
    11
    >>> read_artifact(Path("no-artifact.onnx"))
    b'no artifact'
    """
    return read_at_most(path, MAX_FILE_BYTES + 1)
