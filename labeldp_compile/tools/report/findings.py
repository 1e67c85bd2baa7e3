"""The basis of a report: the verification of one file, and what was decoded from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify import DEFAULT_BUDGET, Budget, Report, check_bytes, read_artifact
from labeldp_verify.artifact import Table
from labeldp_verify.budget import naming
from labeldp_verify.opening import readable

from labeldp_compile.check import Judged, LoadedPolicy, judge_artifact
from labeldp_compile.spec_match import spec_check
from labeldp_compile.tools.inspection.overview import shown_table
from labeldp_compile.tools.report.approval import Approval, found_approval

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey, Signed


@dataclass(frozen=True)
class Findings:
    """A file and what was found in it.

    Attributes:
        file: its name, without folders.
        report: every check that was performed.
        decoded: domain, integers and certificate, for groups those of the group that is shown; None
            unless all checks hold.
        spec: the text of the spec that the file was checked against, or None.
        signer: SHA-256 (hex) of the public key that the signature was checked with, or None.
        table: the number of the table that is shown.
        approval: who is responsible for the file, if it was stated.
        judged: what ``policy`` says of the file, if there is one.
    """

    file: str
    report: Report
    decoded: Table | None
    spec: str | None
    signer: str | None = None
    table: int = 0
    approval: Approval | None = None
    judged: Judged | None = None
    policy: LoadedPolicy | None = None


def examine(
    path: Path,
    spec: Path | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    group: str | None = None,
    *,
    policy: LoadedPolicy | None = None,
    approval: Path | None = None,
    approver: PublicKey | None = None,
) -> Findings:
    """Verify a file, against a spec and a signature if they are given, and decode it.

    ``group`` is the group to show, as ``find_table`` reads it; by default the one with most rows.
    ``approval`` is the file of the approval, by default the one beside the artifact, if there is
    one; its signature is checked with the key ``approver``.
    A failed check is a finding. Raises InputError if the file or the spec cannot be read, if there
    is no such group, or if verifying the file would exceed the budget.
    """
    data = read_artifact(path)
    source = None if spec is None else read_artifact(spec)
    with naming(path):
        report = check_bytes(data, None if source is None else spec_check(source), signed, budget)
    artifact, decoded, table = report.artifact, None, 0
    if artifact is not None:
        table = shown_table(artifact, path, group)
        decoded = readable(artifact.table(table))
    return Findings(
        file=path.name,
        report=report,
        decoded=decoded,
        spec=None if source is None else source.decode("utf-8", errors="replace"),
        signer=None if signed is None else signed.fingerprint(),
        table=table,
        approval=found_approval(path, [data], approval, approver),
        judged=None if policy is None else judge_artifact(path, data, report, policy),
        policy=policy,
    )
