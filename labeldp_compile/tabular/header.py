"""What a table says about itself without its cells: names, types and the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from labeldp_compile.errors import refused
from labeldp_compile.tabular.columns import Kind, kind_of
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.tabular.reader import read_schema, require_column, rows_in
from labeldp_compile.text_form import PLAIN, TextForm


@dataclass(frozen=True)
class ColumnHeader:
    """One column of a table, seen from outside.

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

    Of a folder, the first part says it, and the footers of all how many rows there are. Reads no
    cell, and does not look at the minima and maxima that a footer may hold. Raises DataError if
    the file or the column is missing, or of a type that cannot hold labels.
    """
    headers = [_header_of(file, column, form) for file in files_of(path)]
    return replace(headers[0], rows=rows_in([header.rows for header in headers]))


def _header_of(path: Path, column: str, form: TextForm) -> ColumnHeader:
    schema, rows, csv = read_schema(path, form)
    require_column(path, column, list(schema.names), csv)
    if csv is not None:
        return ColumnHeader(None, None, None)
    arrow_type = schema.field(column).type
    kind = kind_of(arrow_type)
    if kind is None:
        raise refused(path, f"{column!r} has the type {arrow_type}, but labels are numbers or text")
    return ColumnHeader(arrow_type, kind, rows)
