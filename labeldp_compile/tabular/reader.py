"""Stream a Parquet or CSV file batch by batch, whatever its size."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from labeldp_compile.errors import DataError
from labeldp_compile.randomizer import CategoricalDomain, Domain
from labeldp_compile.tabular.label_column import check_type

BATCH_ROWS = 1 << 16
_CSV_BLOCK_BYTES = 1 << 22
_CSV_PARSE = pa_csv.ParseOptions(newlines_in_values=True)
_CSV_SUFFIXES = (".csv",)
_PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class TableReader:
    """An open table with a label column of a usable type.

    Attributes:
        path: of the file.
        column: name of the label column.
        schema: of what ``batches`` yields.
        rows: number of rows if the file states it (Parquet), else None.
        is_csv: True for CSV, False for Parquet.
        all_columns: whether ``batches`` yields the other columns too.
        domain: of the labels.
    """

    path: Path
    column: str
    schema: pa.Schema
    rows: int | None
    is_csv: bool
    all_columns: bool
    domain: Domain

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order. Raises DataError if the file turns out to be damaged."""
        try:
            if self.is_csv:
                yield from _open_csv(self.path, self.column, self.domain, self.all_columns)
            else:
                columns = None if self.all_columns else [self.column]
                with pq.ParquetFile(self.path) as file:
                    yield from file.iter_batches(BATCH_ROWS, columns=columns)
        except (pa.ArrowInvalid, OSError) as error:
            # The message of Arrow may quote a label: say only where it was.
            raise DataError(
                f"{self.path}: cannot be read to the end; is the column {self.column!r} "
                "of one type, and the file whole?"
            ) from error


def open_table(path: Path, column: str, domain: Domain, *, all_columns: bool) -> TableReader:
    """Open a table and check its label column.

    Raises DataError if the file is missing, damaged or empty of columns, or if the column is
    missing or of the wrong type.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_CSV_SUFFIXES, *_PARQUET_SUFFIXES):
        raise DataError(f"{path}: expected a .parquet or .csv file")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    is_csv = suffix in _CSV_SUFFIXES
    try:
        if is_csv:
            names, rows = _csv_names(path), None
        else:
            with pq.ParquetFile(path) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows
            names = schema.names
    except (pa.ArrowInvalid, OSError) as error:
        kind = "CSV" if is_csv else "Parquet"
        raise DataError(f"{path}: is empty, or not a {kind} file") from error
    _require_column(path, column, names)
    if is_csv:
        schema = _open_csv(path, column, domain, all_columns).schema
    elif not all_columns:
        schema = pa.schema([schema.field(column)])
    check_type(domain, column, schema.field(column).type)
    return TableReader(path, column, schema, rows, is_csv, all_columns, domain)


def _require_column(path: Path, column: str, names: list[str]) -> None:
    if names.count(column) > 1:
        raise DataError(f"{path}: has several columns called {column!r}")
    if column not in names:
        close = difflib.get_close_matches(column, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names[:12])}"
        raise DataError(f"{path}: has no column {column!r}; {hint}")


def _csv_names(path: Path) -> list[str]:
    with pa_csv.open_csv(
        path, read_options=_csv_read_options(), parse_options=_CSV_PARSE
    ) as reader:
        return list(reader.schema.names)


def _csv_read_options() -> pa_csv.ReadOptions:
    return pa_csv.ReadOptions(block_size=_CSV_BLOCK_BYTES)


def _open_csv(
    path: Path, column: str, domain: Domain, all_columns: bool
) -> pa_csv.CSVStreamingReader:
    """The label in its domain's type; all other columns as the text that they are."""
    names = _csv_names(path)
    types = {name: pa.string() for name in names}
    if not isinstance(domain, CategoricalDomain):
        types[column] = pa.float64()
    elif not domain.is_text:
        types[column] = pa.int64()
    options = pa_csv.ConvertOptions(
        column_types=types,
        include_columns=names if all_columns else [column],
        strings_can_be_null=False,
    )
    try:
        return pa_csv.open_csv(
            path,
            read_options=_csv_read_options(),
            parse_options=_CSV_PARSE,
            convert_options=options,
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: the label column {column!r} does not hold what the "
            f"{domain.kind} domain of the spec needs"
        ) from error
