"""Where rewritten rows go: Parquet, CSV, or the text of the input with other labels in it."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.csv_rows import Cells, row_form
from labeldp_compile.tabular.csv_splice import ended, header_with, spliced
from labeldp_compile.tabular.formats import Format, format_of
from labeldp_compile.tabular.output_schema import output_schema
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import TableReader

_GZIP_LEVEL = 6
_GZIP_BYTES = 1 << 16
Rows = tuple[Cells | None, pa.RecordBatch, list[pa.Array]]


class TableSink:
    """Writes the rows of one file with private columns.

    From CSV to CSV with the same delimiter all other bytes stay what they are (in UTF-8).
    """

    def __init__(
        self,
        file: BinaryIO,
        form: Format,
        table: TableReader,
        placement: Placement,
        notes: Mapping[str, Provenance],
        delimiter: str | None,
    ) -> None:
        """``delimiter`` is that of CSV whose name says no other (None: a comma)."""
        self._packed = _Gzip(file) if form.gzipped else None
        out = file if self._packed is None else cast(BinaryIO, self._packed)
        mark = _delimiter(form, delimiter)
        self._sink: _Text | _Columns
        if mark is not None and table.csv is not None and mark == table.csv.delimiter:
            self._sink = _Text(out, table.csv, placement)
        else:
            self._sink = _Columns(out, mark, table, placement, notes)

    def write(self, rows: Rows) -> None:
        """The cells of some rows (of CSV), their columns, and their private labels."""
        self._sink.write(rows)

    def finish(self) -> None:
        """Write the end."""
        self._sink.finish()
        if self._packed is not None:
            self._packed.finish()

    def abandon(self) -> None:
        """Let go of the file, which is not going to be whole; to be called while it is open."""
        self._sink.abandon()


class _Gzip(io.RawIOBase):
    """Packs text in pieces of one size, however it was written."""

    def __init__(self, file: BinaryIO) -> None:
        # Without a time or a name: a keyed run repeats the file.
        self._packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        self._pending = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data)
        self._pending += data
        whole = len(self._pending) - len(self._pending) % _GZIP_BYTES
        with memoryview(self._pending) as pending:
            for start in range(0, whole, _GZIP_BYTES):
                self._packed.write(pending[start : start + _GZIP_BYTES])
        del self._pending[:whole]
        return size

    def finish(self) -> None:
        self._packed.write(self._pending)
        self._packed.close()


class _Text:
    """The text of the rows."""

    def __init__(self, file: BinaryIO, csv: CsvFile, placement: Placement) -> None:
        self._file = file
        self._form = row_form(csv.delimiter)
        kept = [name for name in placement.replaced if name is not None]
        self._places = [csv.names.index(name) for name in kept]
        self._dropped = [csv.names.index(name) for name in placement.dropped]
        edited = list(zip(self._places, placement.names, strict=False))
        if not self._dropped:  # names that stay are left as they were written
            edited = [(place, name) for place, name in edited if csv.names[place] != name]
        places, names = [place for place, _ in edited], [name for _, name in edited]
        if placement.keeps_labels:
            names = list(placement.names)
        header = csv.header
        if names:
            header = header_with(header, self._form, len(csv.names), places, names, self._dropped)
        file.write(ended(header))

    def write(self, rows: Rows) -> None:
        cells, _, private = rows
        assert cells is not None
        for piece in spliced(cells, self._form, self._places, private, self._dropped):
            self._file.write(piece)

    def finish(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class _Columns:
    """A Parquet or CSV writer that learns its schema from the first batch."""

    def __init__(
        self,
        file: BinaryIO,
        delimiter: str | None,
        table: TableReader,
        placement: Placement,
        notes: Mapping[str, Provenance],
    ) -> None:
        self._file, self._delimiter = file, delimiter
        self._placement, self._notes = placement, notes
        self._like = table.parquet_metadata()
        self._writer: Any = None

    def write(self, rows: Rows) -> None:
        batch = self._with_private(rows[1], rows[2])
        if self._writer is None:
            if self._delimiter is not None:
                options = pa_csv.WriteOptions(quoting_style="needed", delimiter=self._delimiter)
                self._writer = pa_csv.CSVWriter(self._file, batch.schema, write_options=options)
            else:
                names = self._placement.names
                self._writer = ParquetSink(self._file, batch.schema, self._like, names)
        self._writer.write(batch)

    def finish(self) -> None:
        if self._delimiter is not None:
            self._writer.close()
        else:
            self._writer.finish()

    def abandon(self) -> None:
        if isinstance(self._writer, ParquetSink):
            self._writer.abandon()

    def _with_private(self, batch: pa.RecordBatch, values: list[pa.Array]) -> pa.RecordBatch:
        placement, names = self._placement, batch.schema.names
        drawn = dict(zip(placement.replaced, values, strict=True))
        arrays = [
            drawn.get(name, column)
            for name, column in zip(names, batch.columns, strict=True)
            if name not in placement.dropped
        ]
        arrays += values if placement.keeps_labels else []
        types = [value.type for value in values]
        schema = output_schema(batch.schema, placement, types, self._notes)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def output_format(output: Path) -> Format:
    """The format of an output that ``check_format`` let pass."""
    form = format_of(output, stream=True)
    assert form is not None
    return form


def _delimiter(form: Format, given: str | None) -> str | None:
    """A tab in .tsv, elsewhere the given one or a comma; None for Parquet."""
    return given or "," if form.delimiter == "," else form.delimiter


def check_format(table: TableReader, output: Path, placement: Placement) -> None:
    """Raise DataError, before anything is drawn, if the output's format cannot hold the columns."""
    form = format_of(output, stream=True)
    if form is None:
        raise refused(
            output,
            "expected a .parquet or .csv name for the output (.tsv, .csv.gz and .tsv.gz, too)",
        )
    if form.is_text:
        for field in table.schema:
            if not placement.goes(field.name) and not csv_holds(field.type):
                raise refused(output, f"CSV cannot hold {field.name!r}, a {field.type}")


def csv_holds(kind: pa.DataType) -> bool:
    """Whether Arrow writes a column of this type as CSV."""
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], names=["x"])
    try:
        pa_csv.write_csv(nulls, pa.BufferOutputStream())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
