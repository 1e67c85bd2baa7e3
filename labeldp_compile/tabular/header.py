"""What a table states without its cells: names, types and the number of rows."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from labeldp_compile.errors import refused
from labeldp_compile.tabular.columns import Kind, kind_of
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.formats import files_of, refuse_folder_column, require_format
from labeldp_compile.tabular.parquet_file import read_footer
from labeldp_compile.text_form import PLAIN, TextForm, separated_by


@dataclass(frozen=True)
class ColumnHeader:
    """What a table states about one column.

    Attributes:
        type: of its cells; None for CSV, which states no types.
        kind: of the labels that the type suggests; None for CSV.
        rows: number of rows, which is public, if the file states it.
    """

    type: pa.DataType | None
    kind: Kind | None
    rows: int | None


def read_header(path: Path, column: str, form: TextForm = PLAIN) -> ColumnHeader:
    """What the footer of a Parquet file or the first line of a CSV file says about a column.

    Of a folder, the first part is read, and the footers of all parts for the number of rows. No
    cell is read, and no minimum or maximum that a footer may hold. Raises DataError if the file or
    the column is missing, or if the column's type cannot hold labels.
    """
    types: list[pa.DataType | None] = []
    counts: list[int | None] = []
    for file in files_of(path):
        refuse_folder_column(file, column)
        schema, rows, csv = read_schema(file, form)
        require_column(file, column, list(schema.names), csv)
        kind = None if csv is not None else schema.field(column).type
        if kind is not None and kind_of(kind) is None:
            reason = f"has the type {kind}, but labels are numbers or text"
            raise refused(file, f"{column!r} {reason}")
        types.append(kind)
        counts.append(rows)
    return ColumnHeader(types[0], kind_of(types[0]) if types[0] else None, rows_in(counts))


def read_schema(
    path: Path, form: TextForm = PLAIN, *, stream: bool = False
) -> tuple[pa.Schema, int | None, CsvFile | None]:
    """What a file states without its cells: its columns; the number of rows, if it states it; and
    the CSV file, if it is one. Columns of CSV are text. Raises DataError."""
    if require_format(path, stream=stream).is_text:
        csv = CsvFile.open(path, form)
        return pa.schema([(name, pa.string()) for name in csv.names]), None, csv
    metadata, schema = read_footer(path)
    return schema, metadata.num_rows, None


def rows_in(parts: Sequence[int | None]) -> int | None:
    """The number of rows of all parts, if each states its own."""
    return None if None in parts else sum(filter(None, parts))


def require_column(path: Path, column: str, names: list[str], csv: CsvFile | None = None) -> None:
    """Raise DataError, with the nearest name, unless exactly one column has this name.

    The message names another delimiter if that one would find columns in a text table's header.
    """
    if names.count(column) > 1:
        raise refused(path, f"has several columns called {column!r}")
    if column not in names:
        mark = None if csv is None else csv.other_delimiter(column)
        close = difflib.get_close_matches(column, names, n=1)
        known = ", ".join(map(repr, names[:12])) or "none"
        hint = f"did you mean {close[0]!r}?" if close else f"its columns: {known}"
        if mark is not None:
            hint = separated_by(mark)
        if names and names[0].startswith("sep="):
            hint = "its first line is for Excel alone: remove it"
        raise refused(path, f"has no column {column!r}; {hint}")


def require_distinct(path: Path, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name, or none."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated == [""]:
        raise refused(
            path,
            "has several columns without a name, as Excel writes empty columns at the end of a "
            "sheet: delete these columns there and save it again, or name them",
        )
    if repeated:
        raise refused(path, f"has several columns called {repeated[-1]!r}")
