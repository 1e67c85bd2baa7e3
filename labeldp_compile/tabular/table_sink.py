"""Where rewritten rows go: Parquet, CSV, or the text of the input with other labels in it."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.csv_sink import CsvSink, EditedCsv, csv_holds
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

    From CSV to CSV with the same delimiter all other bytes stay what they are (in UTF-8). Other
    columns are written anew, by a sink that learns their schema from the first batch.
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
        self._file = file if self._packed is None else cast(BinaryIO, self._packed)
        self._placement, self._notes = placement, notes
        self._like = table.parquet_metadata()
        # A tab in .tsv, elsewhere the given one or a comma; None for Parquet.
        self._delimiter = delimiter or "," if form.delimiter == "," else form.delimiter
        same = table.csv is not None and self._delimiter == table.csv.delimiter
        self._edited = EditedCsv(self._file, table.csv, placement) if same else None
        self._sink: CsvSink | ParquetSink | None = None

    def write(self, rows: Rows) -> None:
        """The cells of some rows (of CSV), their columns, and their private labels."""
        cells, batch, private = rows
        if self._edited is not None:
            if cells is not None:
                self._edited.write(cells, private)
            return
        batch = self._with_private(batch, private)
        if self._sink is None and self._delimiter is not None:
            self._sink = CsvSink(self._file, batch.schema, self._delimiter)
        elif self._sink is None:
            names = self._placement.names
            self._sink = ParquetSink(self._file, batch.schema, self._like, names)
        self._sink.write(batch)

    def finish(self) -> None:
        """Write the end."""
        if self._sink is not None:
            self._sink.finish()
        if self._packed is not None:
            self._packed.finish()

    def abandon(self) -> None:
        """Let go of the file, which is not going to be whole; to be called while it is open."""
        if isinstance(self._sink, ParquetSink):
            self._sink.abandon()

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


def output_format(output: Path) -> Format:
    """The format of an output that ``check_format`` let pass."""
    form = format_of(output, stream=True)
    assert form is not None
    return form


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
