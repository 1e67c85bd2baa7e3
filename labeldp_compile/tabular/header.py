"""What a table says about itself without its cells: names, types and the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text

from labeldp_compile.errors import refused
from labeldp_compile.tabular.parts import files_of
from labeldp_compile.tabular.reader import read_schema, require_column
from labeldp_compile.text_form import PLAIN, TextForm

Kind = Literal["integer", "real", "categorical"]


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
    rows = [header.rows for header in headers]
    known = None if None in rows else sum(filter(None, rows))
    return ColumnHeader(headers[0].type, headers[0].kind, known)


def _header_of(path: Path, column: str, form: TextForm) -> ColumnHeader:
    schema, rows, csv = read_schema(path, form)
    require_column(path, column, list(schema.names), csv)
    if csv is not None:
        return ColumnHeader(None, None, None)
    arrow_type = schema.field(column).type
    return ColumnHeader(arrow_type, _kind(path, column, arrow_type), rows)


def _kind(path: Path, column: str, arrow_type: pa.DataType) -> Kind:
    value = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    if is_text(value):
        return "categorical"
    if pa.types.is_integer(value) or pa.types.is_boolean(value):
        return "integer"
    if pa.types.is_floating(value) or pa.types.is_decimal(value):
        return "real"
    raise refused(path, f"{column!r} has the type {arrow_type}, but labels are numbers or text")
