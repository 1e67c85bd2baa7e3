"""What a certificate states, held against what the file gives."""

from __future__ import annotations

from typing import Any

from labeldp_verify.artifact import canonical_json
from labeldp_verify.certificate import Certificate


class CheckFailedError(Exception):
    """A step's statement does not hold; the message is its detail."""


def demand(condition: bool, message: str) -> None:
    """Raise CheckFailedError unless the condition holds."""
    if not condition:
        raise CheckFailedError(message)


def agree(certificate: Certificate, field: str, derived: Any) -> None:
    """Demand that a field, as in ``utility.loss``, states exactly what was derived."""
    stated: Any = certificate
    for part in field.split("."):
        stated = getattr(stated, part)
    same = canonical_json(stated) == canonical_json(derived)  # so that 1, 1.0 and true differ
    demand(same, f"{field} is stated as {short(stated)}, the file gives {short(derived)}")


def short(value: Any, length: int = 60) -> str:
    """A value for a message, cut after ``length`` characters."""
    # A text of a million characters, or a list of as many, is not written out to be cut.
    text = repr(value[: length + 1] if isinstance(value, str | list) else value)
    return text if len(text) <= length else f"{text[: length - 3]}…"
