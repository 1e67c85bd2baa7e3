"""The format of a file, by its name; and the parts of a table in a folder.

Spark writes such folders. The parts are the regular files of one format, by name. Names that begin
with ``.`` or ``_`` are left out. Anything else is refused, not left out: ε would be spent on a
prior that misses rows, or counts rows twice. No link is followed, since the folder may come from a
stranger. Folders inside are named NAME=VALUE, and give their parts a column of text.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PosixPath
from types import MappingProxyType
from urllib.parse import unquote

from labeldp_compile.column_names import is_among
from labeldp_compile.errors import refused

STREAM = "-"  # stdin or stdout, as CSV
EXPECTED = (
    "expected a .parquet or .csv file (.tsv, .csv.gz and .tsv.gz, too), or a folder of such parts"
)
_PARQUET = (".parquet", ".pq")
_TEXT = {".csv": ",", ".tsv": "\t"}
_LEFT_OUT = (".", "_")
# Their folders also hold files with rows that were deleted or replaced.
_TABLE_FORMATS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_NULL = "__HIVE_DEFAULT_PARTITION__"


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
        """Whether it is CSV, with any delimiter."""
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
        raise refused(path, "does not exist")
    return found


def is_stream(path: Path) -> bool:
    """Whether the path is ``-``, where standard input and output are meant."""
    return str(path) == STREAM


class TablePart(PosixPath):
    """The path of a part of a folder.

    Attributes:
        columns: by name, the value that the folders inside give all rows; None is null.
    """

    columns: Mapping[str, str | None] = MappingProxyType({})


def folder_columns(path: Path, names: Sequence[str]) -> Mapping[str, str | None]:
    """The columns that the folders of a part give; of these ``names`` the file has its own."""
    given = path.columns if isinstance(path, TablePart) else {}
    return {name: value for name, value in given.items() if name not in names}


def refuse_folder_column(path: Path, column: str) -> None:
    """Raise DataError if the folders of a part are named by a column of labels."""
    if isinstance(path, TablePart) and is_among(column, path.columns):
        raise refused(
            path,
            f"the names of folders state the label {column!r}, and an output would have the same "
            "names: write the table without these folders, with the label as a column",
        )


def parts_of(folder: Path) -> list[Path]:
    """The parts in the order of their names, all Parquet or all text. Raises DataError."""
    parts: list[Path] = []
    columns: set[tuple[str, ...]] = set()
    for part in _parts_in(folder, {}):
        parts.append(part)
        columns.add(tuple(part.columns))
    if len(columns) > 1:
        raise refused(folder, "holds parts at different depths, or in folders of other columns")
    if not parts:
        raise refused(folder, "holds no parts of a table: expected .parquet, .csv or .tsv files")
    kinds = {form.is_text for part in parts if (form := format_of(part)) is not None}
    if len(kinds) > 1:
        raise refused(folder, "holds both Parquet and CSV parts: keep one kind")
    return parts


def _parts_in(folder: Path, columns: Mapping[str, str | None]) -> Iterator[TablePart]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise refused(folder, f"cannot be read: {error.strerror}") from None
    for entry in entries:
        if kind := _TABLE_FORMATS.get(entry.name):
            reason = f"is a {kind} table, whose files still hold deleted rows"
            raise refused(folder, f"{reason}: write it as plain Parquet first")
        if entry.name.startswith(_LEFT_OUT):
            continue
        name, equals, value = entry.name.partition("=")
        if not entry.is_dir(follow_symlinks=False) or not equals:
            part = TablePart(_regular(folder, entry))
            part.columns = columns
            yield part
            continue
        name, value = unquote(name), unquote(value)
        if not name or name in columns or not (name + value).isprintable():
            raise refused(
                folder / entry.name, "expected a folder called NAME=VALUE, each name once"
            )
        yield from _parts_in(
            folder / entry.name, {**columns, name: None if value == _NULL else value}
        )


def files_of(table: Path) -> list[Path]:
    """The parts of a folder, or the one file that a table is. Raises DataError."""
    return parts_of(table) if table.is_dir() else [table]


def _regular(folder: Path, entry: os.DirEntry[str]) -> Path:
    path = folder / entry.name
    if entry.is_symlink():
        raise refused(
            path, "is a link, and links in a folder of parts are not followed: put the file there"
        )
    if entry.is_dir(follow_symlinks=False):
        raise refused(
            path,
            "is a folder inside a folder of parts, and not called NAME=VALUE: give the folder that "
            "has the parts",
        )
    if not entry.is_file(follow_symlinks=False):
        raise refused(path, "is not a regular file: remove it from the folder")
    if format_of(path) is None:
        raise refused(path, f"is not a part of a table: {EXPECTED}")
    return path
