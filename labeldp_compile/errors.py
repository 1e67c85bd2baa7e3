"""The errors that a user can fix. Each is an ``InputError``: one message and an exit code."""

from pathlib import Path

from labeldp_verify.errors import InputError
from labeldp_verify.printable import printable

__all__ = ["BudgetError", "DataError", "InputError", "SpecError"]


class SpecError(InputError):
    """The spec is wrong; the message starts with the file, the line and the key."""


class DataError(InputError):
    """A data file is missing, unreadable, empty or has the wrong columns."""


class BudgetError(InputError):
    """The spec asks to spend more than the privacy budget allows."""


def refused(path: Path, reason: str) -> DataError:
    """The error that refuses a file; its message has no control characters."""
    return DataError(f"{printable(str(path))}: {printable(reason)}")
