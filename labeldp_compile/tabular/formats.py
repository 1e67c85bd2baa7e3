"""What the name of a file says of its format; and the parts of a table in a folder.

Spark writes such folders. The parts are the regular files of one format, by name. Names that begin
with ``.`` or ``_`` are left out. Anything else is refused rather than left out: a prior of a part
of the rows, or of rows that are in the folder twice, is not the one that is paid for. No link is
followed, for a folder may be somebody else's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from labeldp_compile.errors import refused

STREAM = "-"  # stdin or stdout, as CSV
EXPECTED = (
    "expected a .parquet or .csv file (.tsv, .csv.gz and .tsv.gz, too), or a folder of such parts"
)
_PARQUET = (".parquet", ".pq")
_TEXT = {".csv": ",", ".tsv": "\t"}
_LEFT_OUT = (".", "_")
# Their folders hold files whose rows were deleted or replaced.
_TABLE_FORMATS = {"_delta_log": "Delta", ".hoodie": "Hudi"}


@dataclass(frozen=True)
class Format:
    """The format of a table.

    Attributes:
        delimiter: of a text table, as its name says; None: Parquet.
        gzipped: of a text table.
    """

    delimiter: str | None = None
    gzipped: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is CSV, with whatever delimiter."""
        return self.delimiter is not None


def format_of(path: Path, *, stream: bool = False) -> Format | None:
    """What the name says; None for a name that says nothing. With ``stream``, ``-`` is CSV."""
    name = path.name.lower()
    if stream and is_stream(path):
        return Format(_TEXT[".csv"])
    if name.endswith(_PARQUET):
        return Format()
    gzipped = name.endswith(".gz")
    delimiter = _TEXT.get(Path(name.removesuffix(".gz")).suffix)
    return None if delimiter is None else Format(delimiter, gzipped)


def require_format(path: Path, *, stream: bool = False) -> Format:
    """The format of a file that is there. Raises DataError; with ``stream`` ``-`` is there."""
    found = format_of(path, stream=stream)
    if found is None:
        raise refused(path, EXPECTED)
    if not (stream and is_stream(path)) and not path.is_file():
        raise refused(path, "there is no such file")
    return found


def is_stream(path: Path) -> bool:
    """Whether the path is ``-``, where standard input and output are meant."""
    return str(path) == STREAM


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
