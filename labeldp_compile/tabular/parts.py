"""The parts of a table in a folder, as Spark writes them: the regular files of one format, by name.

Names that begin with ``.`` or ``_`` are left out. Anything else is refused rather than left out: a
prior of a part of the rows, or of rows that are in the folder twice, is not the one that is paid
for. No link is followed, for a folder may be somebody else's.
"""

from __future__ import annotations

import os
from pathlib import Path

from labeldp_compile.errors import refused
from labeldp_compile.tabular.formats import EXPECTED, format_of

_LEFT_OUT = (".", "_")
# Their folders hold files whose rows were deleted or replaced.
_TABLE_FORMATS = {"_delta_log": "Delta", ".hoodie": "Hudi"}


def parts_of(folder: Path) -> list[Path]:
    """The parts in the order of their names, all Parquet or all text. Raises DataError."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise refused(folder, f"cannot be read: {error.strerror}") from None
    parts = []
    for entry in entries:
        if kind := _TABLE_FORMATS.get(entry.name):
            reason = f"is a {kind} table, whose files hold rows that it has no more"
            raise refused(folder, f"{reason}: write it as plain Parquet first")
        if not entry.name.startswith(_LEFT_OUT):
            parts.append(_regular(folder, entry))
    if not parts:
        raise refused(folder, "holds no parts of a table: .parquet, .csv or .tsv files")
    kinds = {form.is_text for part in parts if (form := format_of(part)) is not None}
    if len(kinds) > 1:
        raise refused(folder, "holds Parquet and CSV parts: give one of them")
    return parts


def files_of(table: Path) -> list[Path]:
    """The parts of a folder, or the one file that a table is. Raises DataError."""
    return parts_of(table) if table.is_dir() else [table]


def _regular(folder: Path, entry: os.DirEntry[str]) -> Path:
    path = folder / entry.name
    if entry.is_symlink():
        raise refused(path, "is a link, and links in a folder of parts are not followed")
    if entry.is_dir(follow_symlinks=False):
        raise refused(path, "is a folder, and the parts of a table lie in one: give that one alone")
    if not entry.is_file(follow_symlinks=False):
        raise refused(path, "is no regular file")
    if format_of(path) is None:
        raise refused(path, f"is no part of a table: {EXPECTED}")
    return path
