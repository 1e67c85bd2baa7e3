"""From a file to a report, by every step of ``steps.py`` until one fails, and to what it holds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.analysis.analysis import TooMuchWorkError
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.budget import DEFAULT_BUDGET, Budget, check_deadline, naming, spending
from labeldp_verify.console.report import Report
from labeldp_verify.errors import Check, CheckFailedError, InputError, read_at_most
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Groups, JointDomain, sets_of
from labeldp_verify.limits import Limits
from labeldp_verify.steps import MAX_FILE_BYTES, SpecCheck, Verification
from labeldp_verify.strict import read_decimal, read_whole

if TYPE_CHECKING:  # cryptography is loaded for those who bring a key
    from labeldp_verify.signature import Signed

# ---- From a file to a report: every step of ``steps.py``, until one fails.


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
        except (CheckFailedError, TooMuchWorkError) as error:
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


# ---- From a file to what it holds, for commands that ask about it; every file is verified first.


def open_artifact(path: Path, budget: Budget = DEFAULT_BUDGET) -> Artifact:
    """The artifact of a file.

    Raises InputError if the file cannot be read (TooLargeError if verifying it would exceed the
    budget), and VerificationError if a check fails.
    """
    data = read_artifact(path)
    with naming(path):
        return check_bytes(data, budget=budget).verified()


def table_of(artifact: Artifact, path: Path, group: str | None) -> Table:
    """The only table, or that of a group as it was typed: ``other``, or a value of each column.

    Values of several columns are separated by commas, with ``\\,`` for a comma inside; a number
    selects its band. Raises InputError for a value that is not listed, and for a group that is
    missing or not needed.
    """
    if not artifact.groups.columns:
        if group is not None:
            raise InputError(f"{path}: has one table for all rows: leave out --group")
        return artifact.table(0)
    if group is None:
        how = _how(artifact.groups)
        raise InputError(f"{path}: has a table for each group: say which, {how}")
    return artifact.table(find_table(artifact.groups, group))


def find_table(groups: Groups, text: str) -> int:
    """The number of the table of a group as it was typed, as in ``table_of``."""
    if text == "other":
        return groups.own_tables
    parts = [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]
    if len(groups.columns) == 1:
        parts = [text]
    row = []
    for column, part in zip(groups.columns, parts, strict=False):
        try:
            value = (
                part
                if column.is_text
                else read_whole(part)
                if column.values
                else float(read_decimal(part))
            )
        except ValueError:
            break
        if column.place(value) is None:
            break
        row.append(value)
    if len(row) != len(groups.columns) or len(parts) != len(row):
        raise InputError(f"--group {text}: is not listed; {_how(groups)}")
    return groups.table(row)


def _how(groups: Groups) -> str:
    names = ",".join(column.name.upper() for column in groups.columns)
    return f"as in --group {names}, or --group other for all rows that are not listed"


def readable(table: Table) -> Table:
    """The artifact with the combinations of a joint label by their names, as text categories."""
    domain, randomizer = table.domain, table.randomizer
    if not isinstance(domain, JointDomain):
        return table
    names = [domain.name(number) for number in domain.values]
    if sets_of(randomizer) is None and not isinstance(randomizer, AdditiveRandomizer):
        outputs = tuple(names[int(number)] for number in randomizer.values)
        randomizer = replace(randomizer, values=outputs)
    named = CategoricalDomain(tuple(names), names[int(domain.default)])
    return replace(table, domain=named, randomizer=randomizer)
