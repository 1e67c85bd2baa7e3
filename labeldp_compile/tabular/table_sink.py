"""Where rewritten rows go: Parquet, CSV, or the text of the input with other labels in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.csv_sink import CsvSink, EditedCsv, TextOut, csv_holds
from labeldp_compile.tabular.formats import Format, format_of
from labeldp_compile.tabular.parquet_file import read_footer
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.placement import Placement, output_schema
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import TextForm

Rows = tuple[Cells | None, pa.RecordBatch, list[pa.Array]]


class TableSink:
    """Writes the rows of one file with private columns.

    From CSV to CSV with the same delimiter, all other bytes stay as they are (in UTF-8). Otherwise
    columns are written again, by a sink that learns their schema from the first batch.
    """

    def __init__(
        self,
        file: BinaryIO,
        form: Format,
        table: TableReader,
        placement: Placement,
        notes: Mapping[str, Provenance],
        text: TextForm,
        *,
        keeps_folders: bool = False,
    ) -> None:
        """``text`` is the form of CSV, whose name may say another delimiter.

        Columns that folders give are left out if the output ``keeps_folders``.
        """
        self._file, self._form = file, form
        self._placement, self._notes = placement, notes
        self._like = read_footer(table.path)[0] if table.csv is None else None
        # A tab in .tsv, elsewhere the given one or a comma; None for Parquet.
        self._delimiter = text.delimiter or "," if form.delimiter == "," else form.delimiter
        self._decimal = text.decimal or "."
        self._sink: EditedCsv | CsvSink | ParquetSink | None = None
        self._left_out = set(table.folder_columns) if keeps_folders else set()
        same_cells = keeps_folders or not table.folder_columns
        if table.csv is not None and self._delimiter == table.csv.delimiter and same_cells:
            self._sink = EditedCsv(self._text(), table.csv, placement)

    def write(self, rows: Rows) -> None:
        """The cells of some rows (of CSV), their columns, and their private labels."""
        cells, batch, private = rows
        if isinstance(self._sink, EditedCsv):
            if cells is not None and len(cells):
                self._sink.write(cells, private)
            return
        if self._left_out:
            batch = batch.select(
                [name for name in batch.schema.names if name not in self._left_out]
            )
        batch = self._with_private(batch, private)
        if self._sink is None and self._delimiter is not None:
            self._sink = CsvSink(self._text(), batch.schema, self._delimiter, self._decimal)
        elif self._sink is None:
            names = self._placement.names
            self._sink = ParquetSink(self._file, batch.schema, self._like, names)
        self._sink.write(batch)

    def finish(self) -> None:
        """Write the end."""
        if self._sink is not None:
            self._sink.finish()

    def abandon(self) -> None:
        """Give up the unfinished file; call this while it is open."""
        if isinstance(self._sink, ParquetSink):
            self._sink.abandon()

    def _text(self) -> TextOut:
        return TextOut(self._file, gzipped=self._form.gzipped)

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


def require_writable(table: TableReader, output: Path, placement: Placement) -> Format:
    """The format of an output, which can hold the columns; before anything is drawn.

    Raises DataError.
    """
    form = format_of(output, stream=True)
    if form is None:
        raise refused(
            output, "expected an output name that ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz"
        )
    for field in table.schema if form.is_text else ():
        if not placement.goes(field.name) and not csv_holds(field.type):
            raise refused(output, f"CSV cannot hold {field.name!r}, a {field.type}: write Parquet")
    return form
