"""What a verification found, check by check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from labeldp_compile.artifact.certificate_fields import field_lists
from labeldp_compile.printable import one_line

REPORT_FORMAT_VERSION = "1.0"


class VerificationError(Exception):
    """The artifact does not hold what it claims; ``report`` says which check failed."""

    def __init__(self, report: Report) -> None:
        """Keep the report and take the first failed check as the message."""
        failed = next(check for check in report.checks if not check.ok)
        super().__init__(f"{failed.name}: {failed.detail}")
        self.report = report


@dataclass(frozen=True)
class Check:
    """One check: its short name, whether it holds, and in plain words what was found.

    What was found may quote the file: whatever it says is one printable line from here on.
    """

    name: str
    ok: bool
    detail: str

    def __post_init__(self) -> None:
        """Make the detail printable."""
        object.__setattr__(self, "detail", one_line(self.detail))


@dataclass(frozen=True)
class Report:
    """All checks performed on one file.

    ``certificate`` is the file's own, and may only be believed as far as the checks hold.
    """

    checks: tuple[Check, ...]
    certificate: dict[str, Any] | None = field(repr=False)

    @property
    def ok(self) -> bool:
        """True if every check was performed and holds."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def require(self) -> Report:
        """Return the report, or raise VerificationError if a check failed."""
        if not self.ok:
            raise VerificationError(self)
        return self

    def to_json(self) -> dict[str, Any]:
        """``{format_version, ok, checks: [{name, ok, detail}], proved, declared}``."""
        fields = field_lists(composition="composition" in (self.certificate or {}))
        return {
            "format_version": REPORT_FORMAT_VERSION,
            "ok": self.ok,
            "checks": [
                {"name": check.name, "ok": check.ok, "detail": check.detail}
                for check in self.checks
            ],
            "proved": fields["proved"] if self.ok else [],
            "declared": fields["declared"],
        }
