"""What a certificate states, held against what the file gives."""

from __future__ import annotations

from typing import Any

from labeldp_compile.artifact import canonical_json


class CheckFailedError(Exception):
    """A step's statement does not hold; the message is its detail."""


def demand(condition: bool, message: str) -> None:
    """Raise CheckFailedError unless the condition holds."""
    if not condition:
        raise CheckFailedError(message)


class Claims:
    """The fields of a certificate."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        """``certificate`` has the shape of its format."""
        self._fields = certificate

    def __getitem__(self, key: str) -> Any:
        """A field, or a section of fields."""
        return self._fields[key]

    def agree(self, section: str, key: str, derived: Any) -> None:
        """Demand that a field (of a section, or of the top) is exactly what was derived."""
        stated = (self._fields[section] if section else self._fields)[key]
        same = canonical_json(stated) == canonical_json(derived)  # so that 1, 1.0 and true differ
        name = f"{section}.{key}" if section else key
        demand(same, f"{name} is stated as {short(stated)}, the file gives {short(derived)}")


def short(value: Any, length: int = 60) -> str:
    """A value for a message, cut after ``length`` characters."""
    # A text of a million characters, or a list of as many, is not written out to be cut.
    text = repr(value[: length + 1] if isinstance(value, str | list) else value)
    return text if len(text) <= length else f"{text[: length - 3]}…"
