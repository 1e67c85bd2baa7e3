"""Errors that begin with a path: it comes from a spec or a folder, and may hold anything."""

from __future__ import annotations

from pathlib import Path

from labeldp_verify.printable import printable

from labeldp_compile.errors import DataError


def refused(path: Path, reason: str) -> DataError:
    """The error that refuses a file, in a message that a terminal shows and does not obey."""
    return DataError(f"{printable(str(path))}: {printable(reason)}")
