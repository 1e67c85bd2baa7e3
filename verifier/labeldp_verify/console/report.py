"""What a verification found, check by check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from labeldp_verify.artifact import Artifact
from labeldp_verify.checks import Check
from labeldp_verify.claims import DECLARED_BY, Certificate, rational
from labeldp_verify.claims.certificate import FieldLists
from labeldp_verify.claims.whole_file import field_lists
from labeldp_verify.printable import clipped, one_line
from labeldp_verify.rounded import up_to
from labeldp_verify.steps import LIMITS

REPORT_FORMAT_VERSION = "1.0"
_NAME_COLUMNS = 40


class VerificationError(Exception):
    """The artifact does not hold what it claims; ``report`` says which check failed."""

    def __init__(self, report: Report) -> None:
        """Keep the report and take the first failed check as the message."""
        failed = next(check for check in report.checks if not check.ok)
        super().__init__(f"{failed.name}: {failed.detail}")
        self.report = report


@dataclass(frozen=True)
class Report:
    """All checks performed on one file.

    ``certificate`` is the file's own, and may only be believed as far as the checks hold;
    ``artifact`` is what the file holds, None unless all of them do. ``sha256`` is of the whole
    file.
    """

    checks: tuple[Check, ...]
    certificate: Certificate | None = field(repr=False)
    artifact: Artifact | None = field(default=None, repr=False)
    sha256: str = ""

    @property
    def ok(self) -> bool:
        """True if every check was performed and holds."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def require(self) -> Report:
        """Return the report, or raise VerificationError if a check failed."""
        if not self.ok:
            raise VerificationError(self)
        return self

    def verified(self) -> Artifact:
        """What the file holds; raises VerificationError if a check failed."""
        artifact = self.require().artifact
        assert artifact is not None
        return artifact

    def in_words(self, name: str) -> list[str]:
        """Lines for people; ``name`` of the file is printable."""
        lines = [
            f"{'ok    ' if check.ok else 'FAILED'} {check.name:<12} {check.detail}"
            for check in self.checks
        ]
        if not self.ok:
            return [*lines, self.verdict(name)]
        lists = self.fields
        return [
            *lines,
            f"proved by the file:  {', '.join(lists.proved)}",
            f"only declared in it: {', '.join(lists.declared)}",
            *self.use_in_words(),
            self.verdict(name),
        ]

    def verdict(self, name: str) -> str:
        """The last line, on which everything stands that a gate or a log needs."""
        if not self.ok or self.certificate is None:
            if self.checks and self.checks[-1].name == LIMITS:
                return f"{name}: verifies, but NOT WITHIN THE LIMITS that were asked for."
            return f"{name}: DOES NOT VERIFY. Do not use this file."
        privacy = self.certificate.privacy
        return (
            f"{name}: verified. ε ≤ {up_to(privacy.epsilon_label_bound)} a label, declared "
            f"{privacy.epsilon_label:.9g}{_of_the_prior(self.certificate)}"
            f"{_of_groups(self.certificate)}; sha256 {self.sha256}"
        )

    def use_in_words(self) -> list[str]:
        """What the labels are good for, and warnings; nothing unless all checks hold."""
        if self.artifact is None:
            return []
        only = self.artifact.only
        use = [] if only is None else ["use of the private labels:", *only.use_in_words()]
        return [*(f"warning: {found.text}" for found in self.artifact.shortcomings), *use]

    def _epsilon(self) -> dict[str, float] | None:
        if not self.ok or self.certificate is None:
            return None
        privacy = self.certificate.privacy
        return {
            "label_bound": privacy.epsilon_label_bound,
            "label": privacy.epsilon_label,
            "prior": privacy.epsilon_prior,
            "total": privacy.epsilon_total,
        }

    @property
    def fields(self) -> FieldLists:
        """Which fields a file of this kind proves, if all checks hold, and which it declares."""
        return field_lists(self.certificate)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, ok, sha256, name, epsilon, checks: [{name, ok, detail}], proved,
        declared, usefulness, warnings}``; name, ε and the last two are null unless all checks hold;
        usefulness is null for tables by group, too.
        """
        fields, found = self.fields, self.artifact
        only = None if found is None else found.only
        return {
            "format_version": REPORT_FORMAT_VERSION,
            "ok": self.ok,
            "sha256": self.sha256,
            "name": self.certificate.name if self.ok and self.certificate is not None else None,
            "epsilon": self._epsilon(),
            "checks": [
                {"name": check.name, "ok": check.ok, "detail": check.detail}
                for check in self.checks
            ],
            "proved": fields.proved if self.ok else [],
            "declared": fields.declared,
            "usefulness": None if only is None else only.use_to_json(),
            "warnings": None if found is None else [asdict(part) for part in found.shortcomings],
        }


def _of_the_prior(certificate: Certificate) -> str:
    """What a label pays besides, if it was in the table that the prior was counted from."""
    exact = certificate.exact
    prior, total = rational(exact.epsilon_prior), rational(exact.epsilon_total)
    if not prior:
        return ""
    shown, together = (up_to(part).rstrip("0").rstrip(".") for part in (prior, total))
    return (
        f"; declared for a label in the prior's table, too: at least {shown}, together {together}"
    )


def _of_groups(certificate: Certificate) -> str:
    """Who says that groups are public: if they are not, ε says nothing about labels."""
    if certificate.groups is None:
        return ""
    names = ", ".join(
        clipped(one_line(column.name), _NAME_COLUMNS) for column in certificate.groups.columns
    )
    return f"; groups by {names}: declared public by {DECLARED_BY}, not proved"
