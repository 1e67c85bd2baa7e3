"""Where rewritten rows go: Parquet, CSV, or the text of the input with other labels in it."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.csv_rows import row_form
from labeldp_compile.tabular.csv_splice import header_with, spliced
from labeldp_compile.tabular.formats import Format, format_of
from labeldp_compile.tabular.output_schema import output_schema
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import TableReader

_GZIP_LEVEL = 6
Rows = tuple[bytes, pa.RecordBatch, pa.Array]


class TableSink:
    """Writes the rows of one file with a private column.

    From CSV to CSV with the same delimiter all other bytes stay what they are (in UTF-8).
    """

    def __init__(
        self,
        file: BinaryIO,
        form: Format,
        table: TableReader,
        add_as: str | None,
        notes: Mapping[str, Provenance],
        delimiter: str | None,
    ) -> None:
        """``delimiter`` is that of CSV whose name says no other (None: a comma)."""
        self._packed: gzip.GzipFile | None = None
        if form.gzipped:  # without a time or a name: a keyed run repeats the file
            self._packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        out = file if self._packed is None else cast(BinaryIO, self._packed)
        mark = _delimiter(form, delimiter)
        self._sink: _Text | _Columns
        if mark is not None and table.csv is not None and mark == table.csv.delimiter:
            self._sink = _Text(out, table.csv, table.column, add_as)
        else:
            self._sink = _Columns(out, mark, table, add_as, notes)

    def write(self, rows: Rows) -> None:
        """The text of some rows (of CSV), their columns, and their private labels."""
        self._sink.write(rows)

    def finish(self) -> None:
        """Write the end."""
        self._sink.finish()
        if self._packed is not None:
            self._packed.close()


class _Text:
    """The text of the rows."""

    def __init__(self, file: BinaryIO, csv: CsvFile, column: str, add_as: str | None) -> None:
        self._file, self._path, self._columns = file, csv.path, len(csv.names)
        self._form = row_form(csv.delimiter)
        self._place = csv.names.index(column) if add_as is None else None
        file.write(header_with(csv.header, self._form, add_as))

    def write(self, rows: Rows) -> None:
        block, _, private = rows
        try:
            pieces = spliced(block, self._form, self._columns, self._place, private)
        except ValueError:
            raise refused(self._path, "is damaged: a quote is not closed") from None
        for piece in pieces:
            self._file.write(piece)

    def finish(self) -> None:
        pass


class _Columns:
    """A Parquet or CSV writer that learns its schema from the first batch."""

    def __init__(
        self,
        file: BinaryIO,
        delimiter: str | None,
        table: TableReader,
        add_as: str | None,
        notes: Mapping[str, Provenance],
    ) -> None:
        self._file, self._delimiter, self._column = file, delimiter, table.column
        self._add_as, self._notes = add_as, notes
        self._like = table.parquet_metadata()
        self._writer: Any = None

    def write(self, rows: Rows) -> None:
        batch = self._with_private(rows[1], rows[2])
        if self._writer is None:
            if self._delimiter is not None:
                options = pa_csv.WriteOptions(quoting_style="needed", delimiter=self._delimiter)
                self._writer = pa_csv.CSVWriter(self._file, batch.schema, write_options=options)
            else:
                drawn = self._add_as or self._column
                self._writer = ParquetSink(self._file, batch.schema, self._like, drawn)
        self._writer.write(batch)

    def finish(self) -> None:
        if self._delimiter is not None:
            self._writer.close()
        else:
            self._writer.finish()

    def _with_private(self, batch: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
        arrays = list(batch.columns)
        if self._add_as is None:
            arrays[batch.schema.get_field_index(self._column)] = values
        else:
            arrays.append(values)
        schema = output_schema(batch.schema, self._column, self._add_as, values.type, self._notes)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def output_format(output: Path) -> Format:
    """The format of an output that ``check_format`` let pass."""
    form = format_of(output, stream=True)
    assert form is not None
    return form


def _delimiter(form: Format, given: str | None) -> str | None:
    """A tab in .tsv, elsewhere the given one or a comma; None for Parquet."""
    return given or "," if form.delimiter == "," else form.delimiter


def check_format(table: TableReader, output: Path, add_as: str | None) -> None:
    """Raise DataError, before anything is drawn, if the output's format cannot hold the columns."""
    form = format_of(output, stream=True)
    if form is None:
        raise refused(
            output,
            "expected a .parquet or .csv name for the output (.tsv, .csv.gz and .tsv.gz, too)",
        )
    if form.is_text:
        for field in table.schema:
            kept = add_as is not None or field.name != table.column
            if kept and not csv_holds(field.type):
                raise refused(output, f"CSV cannot hold {field.name!r}, a {field.type}")


def csv_holds(kind: pa.DataType) -> bool:
    """Whether Arrow writes a column of this type as CSV."""
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], names=["x"])
    try:
        pa_csv.write_csv(nulls, pa.BufferOutputStream())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
