"""What a policy says about one file: a finding for each rule that applies."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from labeldp_verify.printable import one_line

Kind = Literal["artifact", "plan", "training run", "ledger", "folder of parts", "unknown"]
Worth = Literal["proved", "declared", "estimated", "counted"]
VERIFIED = "verified"
OPEN = "open"
"""What is found of a rule that only the compiled file can decide."""


@dataclass(frozen=True)
class PolicyFinding:
    """One rule, and whether a file meets it.

    Attributes:
        rule: the key of the policy, or ``verified``.
        ok: whether it is met.
        worth: what ``found`` is worth: proved, declared, estimated or counted.
        text: one sentence, printable.
        found, limit: the two sides of the comparison as short texts; empty where there are none.
    """

    rule: str
    ok: bool
    worth: Worth
    text: str
    found: str = ""
    limit: str = ""

    def __post_init__(self) -> None:
        """Make the texts printable: they may quote the file."""
        for name in ("text", "found", "limit"):
            object.__setattr__(self, name, one_line(getattr(self, name)))


@dataclass(frozen=True)
class Judged:
    """A file, and what a policy says about it.

    Attributes:
        path: as it was named, or found.
        kind: what it is.
        name: of the spec, the run or the data sets; empty if it is not known.
        sha256: of an artifact; else empty.
        findings: at least one.
    """

    path: str
    kind: Kind
    findings: tuple[PolicyFinding, ...]
    name: str = ""
    sha256: str = ""

    @property
    def failed(self) -> tuple[PolicyFinding, ...]:
        """The rules that it does not meet."""
        return tuple(one for one in self.findings if not one.ok)

    @property
    def ok(self) -> bool:
        """Whether something was checked, and all of it is met."""
        return bool(self.findings) and not self.failed

    def to_json(self) -> dict[str, Any]:
        """``{path, kind, name, sha256, ok, findings: [{rule, ok, worth, text, found, limit}]}``."""
        return {
            "path": one_line(self.path),
            "kind": self.kind,
            "name": one_line(self.name),
            "sha256": self.sha256,
            "ok": self.ok,
            "findings": [asdict(one) for one in self.findings],
        }
