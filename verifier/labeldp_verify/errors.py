"""Errors that explain themselves to a person.

Every error a user can cause is an ``InputError``: the command line prints its one message and exits
with its exit code, 2 unless it says otherwise. A check that does not hold is not an error of this
kind: ``verify`` reports it and exits with 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import one_line


class InputError(Exception):
    """The user's input or usage is wrong; the message says what was expected.

    A message can quote files, so it is made one printable line. ``exit_code`` is that of the
    command: 1 where the input is right, but a check fails.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        """Keep the message, made printable."""
        super().__init__(one_line(message))


@contextmanager
def readable(path: Path, kind: type[InputError] = InputError) -> Iterator[None]:
    """Turn an OSError of the block into an error that says that the path cannot be read."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


def read_at_most(path: Path, most: int, kind: type[InputError] = InputError) -> bytes:
    """The first bytes of a file. Raises an error of this kind if it cannot be read."""
    with readable(path, kind), path.open("rb") as file:
        return file.read(most)


# ---- A check of a file: what it requires, and what it found.


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
