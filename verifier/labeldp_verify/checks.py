"""A check of a file: what it requires, and what it found."""

from dataclasses import dataclass
from typing import Any

from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import one_line


@dataclass(frozen=True)
class Check:
    """One check: its short name, whether it holds, and in plain words what was found.

    The detail may quote the file, so it is made one printable line.
    """

    name: str
    ok: bool
    detail: str

    def __post_init__(self) -> None:
        """Make the detail printable."""
        object.__setattr__(self, "detail", one_line(self.detail))


class CheckFailedError(Exception):
    """A check does not hold; the message says why."""


def demand(condition: bool, message: str) -> None:
    """Raise CheckFailedError unless the condition holds."""
    if not condition:
        raise CheckFailedError(message)


def agree(certificate: Any, field: str, derived: Any) -> None:
    """Demand that a field, as in ``utility.loss``, states exactly what was derived."""
    stated: Any = certificate
    for part in field.split("."):
        stated = getattr(stated, part)
    require_same(field, stated, derived)


def require_same(field: str, stated: Any, derived: Any) -> None:
    """Demand that what a field states, as JSON, is what was derived."""
    same = canonical_json(stated) == canonical_json(derived)  # so that 1, 1.0 and true differ
    demand(same, f"{field} is stated as {short(stated)}, but the integers give {short(derived)}")


def short(value: Any, length: int = 60) -> str:
    """A value for a message, cut after ``length`` characters."""
    # A text of a million characters, or a list of as many, is not written out to be cut.
    text = repr(value[: length + 1] if isinstance(value, str | list) else value)
    return text if len(text) <= length else f"{text[: length - 3]}…"
