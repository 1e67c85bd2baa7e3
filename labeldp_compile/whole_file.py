"""Output files of the commands: whole or not at all, with errors for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from labeldp_runtime import whole_file
from labeldp_runtime.whole_file import Found, say_removed
from labeldp_verify.printable import printable

from labeldp_compile.errors import DataError


@contextmanager
def replaced_when_whole(
    path: Path, *, most: int = 0o7777, found: Found = say_removed
) -> Iterator[BinaryIO]:
    """``labeldp_runtime.whole_file.replaced_when_whole``, whose OSErrors are DataErrors."""
    try:
        with whole_file.replaced_when_whole(path, most=most, found=found) as file:
            yield file
    except whole_file.UnfinishedError as error:
        raise DataError(printable(str(error))) from None
    except OSError as error:
        reason = error.strerror or "the disk or the folder refuses it"
        raise DataError(f"{printable(str(path))}: cannot be written: {printable(reason)}") from None
