"""One difference, and all of them together."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from labeldp_verify.printable import clipped

FORMAT_VERSION = "1.0"
Keyed = Literal["valid", "not valid", "unknown"]
EQUAL, COMPATIBLE, BREAKING = 0, 3, 4
"""Exit codes of ``--detailed-exitcode``; 1 and 2 keep their meaning."""
_KEYED = {
    "valid": "keyed outputs stay valid: the integers are the same",
    "not valid": "keyed outputs do NOT stay valid: a label that OLD has drawn spends ε again",
    "unknown": "whether keyed outputs stay valid is known when NEW is compiled: its prior is drawn "
    "then, unless a ledger has it",
}
_COLUMNS = 40


@dataclass(frozen=True)
class Change:
    """One fact that differs.

    Attributes:
        what: the fact.
        old, new: as short texts; empty where there is none.
        breaks: what no longer holds; None if nothing breaks.
    """

    what: str
    old: str
    new: str
    breaks: str | None = None


@dataclass(frozen=True)
class Differences:
    """All differences of two things of one kind.

    Attributes:
        kind: ``artifact`` or ``spec``.
        changes: in a fixed order.
        keyed: whether outputs that were drawn with a key stay what they are.
    """

    kind: Literal["artifact", "spec"]
    changes: Sequence[Change]
    keyed: Keyed

    @property
    def breaking(self) -> bool:
        """Whether something that holds for the old one does not hold for the new one."""
        return any(one.breaks is not None for one in self.changes)

    @property
    def code(self) -> int:
        """The detailed exit code."""
        return BREAKING if self.breaking else COMPATIBLE if self.changes else EQUAL

    def to_json(self) -> dict[str, Any]:
        """``{format_version, kind, equal, breaking, keyed_outputs, changes}``."""
        return {
            "format_version": FORMAT_VERSION,
            "kind": self.kind,
            "equal": not self.changes,
            "breaking": self.breaking,
            "keyed_outputs": self.keyed,
            "changes": [asdict(one) for one in self.changes],
        }

    def in_words(self) -> list[str]:
        """Lines for people; the verdict is the last."""
        lines = []
        for one in self.changes:
            old, new = (clipped(text, _COLUMNS) or "–" for text in (one.old, one.new))
            mark = "breaking" if one.breaks else "changed "
            reason = f": {one.breaks}" if one.breaks else ""
            lines.append(f"{mark}  {one.what:<24} {old} → {new}{reason}")
        lines.append(_KEYED[self.keyed])
        count = sum(one.breaks is not None for one in self.changes)
        if not self.changes:
            lines.append(f"equal: the two {self.kind}s promise and do the same")
        elif count:
            lines.append(f"BREAKING: {count} of {len(self.changes)} changes")
        else:
            lines.append(f"compatible: {len(self.changes)} changes, none of them breaking")
        return lines
