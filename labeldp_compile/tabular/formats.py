"""How tables are stored: the format that a name says, the parts of a folder, the form of text.

Spark writes such folders. The parts are the regular files of one format, by name. Names that begin
with ``.`` or ``_`` are left out. Anything else is refused, not left out: ε would be spent on a
prior that misses rows, or counts rows twice. No link is followed, since the folder may come from a
stranger. Folders inside are named NAME=VALUE, and give their parts a column of text.

An encoding is UTF-8, or has one byte per character and contains ASCII. Then no byte of a label can
swallow a delimiter, a quote or a line end, and no label changes how another is read.

Spark and DuckDB ignore the case of a column's name. Spreadsheets do not show blanks at its ends, or
how an accent is encoded. If an engine could mistake a name for the label's, it is refused wherever
a column must be public.
"""

import codecs
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PosixPath
from types import MappingProxyType
from urllib.parse import unquote

from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import refused

UTF8 = "utf-8"
_FORBIDDEN = '"\r\n\0+-.'  # the last three stand in numbers, which have no quotes
_ISO = tuple(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17)))
_WINDOWS = tuple(f"cp{page}" for page in (*range(1250, 1259), 437, 850, 852, 858, 866, 874))
_ENCODINGS = {UTF8, "ascii", *_ISO, *_WINDOWS, "koi8-r", "koi8-u", "mac-roman"}


@dataclass(frozen=True)
class TextForm:
    """The facts that a text table does not state itself.

    Attributes:
        delimiter: one ASCII character; None: a tab in .tsv, a comma elsewhere.
        encoding: Python's name of it; None: UTF-8.
        decimal: the decimal mark of numbers, ``.`` or ``,``; None: a point.
        multiline_cells: whether quoted cells other than labels are meant to contain line ends.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    multiline_cells: bool = False

    def comma_warning(self) -> list[str]:
        """A line where cells of numbers may have decimal commas: the delimiter alone says so."""
        if self.delimiter != ";" or self.decimal is not None:
            return []
        return [
            "numbers such as 51,62 (decimal comma) are read as missing. If this table has them, "
            "use --decimal , (in a spec or a config: decimal: ','). --decimal . ends this warning"
        ]


PLAIN = TextForm()


def read_delimiter(text: str) -> str:
    """One character of an option or a spec; ``\\t`` and ``tab`` are tabs. Raises ValueError."""
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _FORBIDDEN:
        raise ValueError(
            "expected one ASCII character such as ';', or tab: no letter, digit, quote, line "
            "end, or one of + - ."
        )
    return text


def read_decimal_mark(text: str) -> str:
    """A point or a comma. Raises ValueError."""
    if text not in (".", ","):
        raise ValueError("expected . or ,")
    return text


def read_encoding(text: str) -> str:
    """Python's name of an encoding that tables may have. Raises ValueError."""
    try:
        name = codecs.lookup(text).name
    except (LookupError, ValueError):
        name = ""
    if name not in _ENCODINGS:
        raise ValueError(
            "expected utf-8, or an encoding of one byte per character such as latin-1, cp1252 or "
            "koi8-r; convert files in other encodings to UTF-8"
        )
    return name


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
    """The format by a file's name; None without a known ending. With ``stream``, ``-`` is CSV."""
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


def is_among(name: str, others: Iterable[str]) -> bool:
    """Whether a column could be mistaken for one of the others, by the names alone."""
    return _folded(name) in map(_folded, others)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()


def key_of(columns: Sequence[str]) -> str:
    """How ledgers and keyed draws name the columns of a label: its one column, or a list as JSON.

    No other list of columns has the same key.
    """
    return columns[0] if len(columns) == 1 else canonical_json(list(columns))


def columns_of(key: str) -> set[str]:
    """The label columns that a key may name: itself, and those in it if it is a list."""
    try:
        listed = json.loads(key)
    except (ValueError, RecursionError):
        return {key}
    return {key, *map(str, listed)} if isinstance(listed, list) else {key}
