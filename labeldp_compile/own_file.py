"""Files that decide about secrets: opened once, so that the checked file is the one read."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

_OTHERS, OTHERS_WRITE = 0o077, 0o022


@dataclass(frozen=True, repr=False)
class OwnFile:
    """What was found under a name; ``data`` is empty unless it is a file."""

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
