"""Files of the user's own: secrets, and records that labeldp keeps.

A file that decides about secrets is opened once, so that the checked file is the one read. A record
is a JSON file of one model, written whole and read strictly. The user is trusted: a record is
checked for damage, not for an attacker.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from labeldp_runtime import keys
from labeldp_verify.errors import readable
from labeldp_verify.printable import json_text
from labeldp_verify.strict import parse_json

from labeldp_compile.errors import DataError
from labeldp_compile.whole_file import replaced_when_whole

if TYPE_CHECKING:  # a command that reads no record need not wait for it
    from pydantic import BaseModel

_OTHERS, OTHERS_WRITE = 0o077, 0o022


@dataclass(frozen=True, repr=False)
class OwnFile:
    """The content of a name; ``data`` is empty unless it is a file."""

    data: bytes
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file: no folder, pipe or device."""
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_exposed(self) -> bool:
        """Whether another user owns it, or may read or write it."""
        return is_others(self.status) or bool(self.status.st_mode & _OTHERS)


def read_own(path: Path, most: int, *, links: bool = True) -> OwnFile:
    """Read at most ``most`` bytes; no pipe is waited for. Raises OSError; ValueError for a NUL."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return OwnFile(b"", status)
        with os.fdopen(os.dup(handle), "rb") as file:
            return OwnFile(file.read(most), status)
    finally:
        os.close(handle)


def is_others(status: os.stat_result) -> bool:
    """Whether a file belongs to neither this user nor root."""
    return hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid())


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """``labeldp_runtime.keys.read_secret``, whose OSErrors are InputErrors."""
    with readable(path):
        return keys.read_secret(path, most)


MAX_BYTES = 1 << 28
R = TypeVar("R", bound="BaseModel")


def write_record(path: Path, record: "BaseModel", *, secret: bool = False) -> None:
    """Write a record; only its owner can read a secret one. Raises DataError."""
    with replaced_when_whole(path, most=0o600 if secret else 0o7777) as file:
        file.write((json_text(record.model_dump()) + "\n").encode())


def read_record(path: Path, model: type[R]) -> R | None:
    """The record in a file; None if the file is damaged, or holds anything else.

    ``model`` forbids unknown keys. Raises DataError if the file cannot be read.
    """
    with readable(path, DataError), path.open("rb") as file:
        try:
            return model.model_validate(json_object(file))
        except ValueError:
            return None


def json_object(file: BinaryIO) -> dict[str, Any]:
    """The object in an open JSON file. Raises ValueError for anything else, or a larger file."""
    data = file.read(MAX_BYTES + 1)
    value = parse_json(data.decode()) if len(data) <= MAX_BYTES else None
    if not isinstance(value, dict):
        raise ValueError("no JSON object, or a very large one")
    return value
