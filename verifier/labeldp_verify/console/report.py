"""What a verification found, check by check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from labeldp_verify.artifact import Artifact
from labeldp_verify.checks import Check
from labeldp_verify.claims import Certificate, person_epsilon, rational
from labeldp_verify.claims.certificate import FieldLists
from labeldp_verify.claims.whole_file import field_lists
from labeldp_verify.console.colour import Marked
from labeldp_verify.console.summary import epsilon_in_words, passed, short_summary, summary
from labeldp_verify.steps import LIMITS

REPORT_FORMAT_VERSION = "1.0"


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

    def in_words(self, name: str, *, verbose: bool = False, brief: bool = False) -> list[str]:
        """Lines for people; the verdict is the last.

        Args:
            name: of the file, printable.
            verbose: also every check, the lists of fields, and all figures on use.
            brief: one line and the verdict, for a file among several; failures and warnings are
                shown all the same.
        """
        lines: list[str] = []
        checks = [check for check in self.checks if verbose or not check.ok]
        if self.artifact is not None:
            if brief and not verbose:
                facts = short_summary(self.artifact, self.checks)
            else:
                facts = summary(self.artifact, self.checks, self.sha256)
                facts.append(("checks", passed(self.checks)))
            lines += [f"  {what:<13} {text}" for what, text in facts]
        else:
            lines.append(f"  {'checks':<13} {passed(self.checks)}, 1 failed")
        lines += [_line(check) for check in checks]
        if self.artifact is not None:
            if verbose:
                lines += self._details()
            for found in self.artifact.shortcomings:
                lines.append(Marked(f"warning: {found.text}", "warning"))
        return [*lines, self.verdict(name)]

    def verdict(self, name: str) -> str:
        """The last line."""
        if self.ok and self.certificate is not None:
            bound = epsilon_in_words(rational(self.certificate.exact.epsilon_label_bound))
            return Marked(f"{name}: verified. The file proves ε ≤ {bound} per label.", "ok")
        if self.checks and self.checks[-1].name == LIMITS:
            return Marked(f"{name}: verified, but NOT WITHIN THE LIMITS that you set.", "failed")
        return Marked(f"{name}: DOES NOT VERIFY. Do not use this file.", "failed")

    def _details(self) -> list[str]:
        """What is proved, what is declared, and all figures on use."""
        lists, only = self.fields, None if self.artifact is None else self.artifact.only
        use = [] if only is None else ["use of the private labels:", *only.use_in_words()]
        return [
            f"proved by the file:  {', '.join(lists.proved)}",
            f"only declared in it: {', '.join(lists.declared)}",
            *use,
        ]

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

    def _person(self) -> dict[str, Any] | None:
        found = person_epsilon(self.certificate) if self.ok and self.certificate else None
        return None if found is None else found.to_json()

    @property
    def fields(self) -> FieldLists:
        """Which fields a file of this kind proves, if all checks hold, and which it declares."""
        return field_lists(self.certificate)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, ok, sha256, name, epsilon, person, checks: [{name, ok, detail}],
        proved, declared, usefulness, warnings}``; name, ε and the last two are null unless all
        checks hold; usefulness is null for tables by group, too, and person if a file does not say
        how many labels one has.
        """
        fields, found = self.fields, self.artifact
        only = None if found is None else found.only
        return {
            "format_version": REPORT_FORMAT_VERSION,
            "ok": self.ok,
            "sha256": self.sha256,
            "name": self.certificate.name if self.ok and self.certificate is not None else None,
            "epsilon": self._epsilon(),
            "person": self._person(),
            "checks": [
                {"name": check.name, "ok": check.ok, "detail": check.detail}
                for check in self.checks
            ],
            "proved": fields.proved if self.ok else [],
            "declared": fields.declared,
            "usefulness": None if only is None else only.use_to_json(),
            "warnings": None if found is None else [asdict(part) for part in found.shortcomings],
        }


def _line(check: Check) -> str:
    line = f"{'ok    ' if check.ok else 'FAILED'} {check.name:<12} {check.detail}"
    return line if check.ok else Marked(line, "failed")
