"""A verification as an in-toto attestation: a Simple Verification Result, version 0.1.

A Statement about one file, whose predicate names the verifier, the time, and the properties that
were verified. A property is a text that a gate compares. Declared fields are never properties: they
are in a separate field with the word ``declared``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from labeldp_verify.claims import DECLARED_BY, Certificate
from labeldp_verify.claims.records import FieldLists
from labeldp_verify.console.report import Report
from labeldp_verify.limits import Limits
from labeldp_verify.printable import one_line, up_to
from labeldp_verify.steps import LIMITS_CHECK

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed

PREDICATE_TYPE = "https://in-toto.io/attestation/svr/v0.1"
_STRUCT = "type.googleapis.com/google.protobuf.Struct"


def attestation(
    report: Report,
    name: str,
    time: str,
    *,
    limits: Limits | None = None,
    signed: Signed | None = None,
) -> dict[str, Any]:
    """The Statement on a file that verified; raises VerificationError unless it did.

    Args:
        report: of the verification.
        name: of the file, without folders; the digest says which one it is. Text from
            files is made printable.
        time: of the verification, as ``2026-01-31T12:00:00Z``.
        limits: that the verification had.
        signed: the signature that the verification had.
    """
    from importlib.metadata import version  # noqa: PLC0415  # for those who attest

    from labeldp_verify.signature import STATEMENT_TYPE  # noqa: PLC0415  # cryptography

    certificate = report.require().certificate
    assert certificate is not None
    verifier: dict[str, Any] = {"id": f"pkg:generic/labeldp-verify@{version('labeldp-verify')}"}
    if policy := _policy(report, certificate, limits, signed):
        verifier["policy"] = {"@type": _STRUCT, "value": policy}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": one_line(name), "digest": {"sha256": report.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "verifier": verifier,
            "timeCreated": time,
            "properties": _properties(report, certificate),
            "labeldp": _claims(certificate, report.fields),
        },
    }


def _properties(report: Report, certificate: Certificate) -> list[str]:
    """The proved ε of a label, rounded up, and one for each check, which all hold."""
    checks = [f"CHECK_{check.name.upper().replace(' ', '_')}" for check in report.checks]
    checks[checks.index("CHECK_SECURE")] = "NOT_DECLARED_INSECURE"  # which no file can prove
    return [
        "LABELDP_VERIFIED",
        f"LABELDP_EPSILON_PROVED_{up_to(Fraction(certificate.exact.epsilon_label_bound))}",
        "LABELDP_ADJACENCY_SUBSTITUTION_OF_ONE_LABEL",
        *(f"LABELDP_{check}" for check in checks),
    ]


def _policy(
    report: Report, certificate: Certificate, limits: Limits | None, signed: Signed | None
) -> dict[str, Any]:
    """The conditions on the file in addition to verifying; numbers are exact texts.

    It has only requirements that the report has a check for.
    """
    policy: dict[str, Any] = {}
    checked = {check.name for check in report.checks}
    if limits is not None and LIMITS_CHECK in checked:
        policy = {name: one_line(str(value)) for name, value in limits.items()}
    if "spec" in checked:
        policy["spec"] = {"digest": {"sha256": certificate.digests.spec}}
    if signed is not None and "signature" in checked:
        policy["public_key"] = {"digest": {"sha256": signed.fingerprint()}}
    return policy


def _claims(certificate: Certificate, fields: FieldLists) -> dict[str, Any]:
    """The claims that a reader asks for first, and the names of all."""
    exact, groups = certificate.exact, {}
    person = {}
    if certificate.person is not None:
        texts = {name: one_line(str(value)) for name, value in vars(certificate.person).items()}
        person = {"person": texts}
    if certificate.groups is not None:
        names = [one_line(column.name) for column in certificate.groups.columns]
        groups = {"groups": {"columns": names, "public": f"declared by {DECLARED_BY}"}}
    return {
        "format": certificate.format_version,
        "adjacency": certificate.privacy.adjacency,
        "proved": {
            "epsilon_label_bound": exact.epsilon_label_bound,
            "labels": str(certificate.labels),
            "outputs": str(certificate.outputs),
            "tables_sha256": certificate.digests.tables,
            "fields": fields.proved,
        },
        "declared": {
            "name": one_line(certificate.name),
            "mechanism": one_line(certificate.mechanism),
            "columns": [one_line(column) for column in certificate.label_columns],
            "epsilon_label": exact.epsilon_label,
            "epsilon_prior": exact.epsilon_prior,
            "epsilon_total": exact.epsilon_total,
            **groups,
            **person,
            "fields": fields.declared,
        },
    }
