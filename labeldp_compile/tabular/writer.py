"""Rewrite a table with one column replaced or added; the result appears whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.duplicates import UniqueIds
from labeldp_runtime.whole_file import Found, say_removed
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.formats import Format, format_of, is_stream
from labeldp_compile.tabular.label_column import label_array
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.provenance import KEY, Provenance, read_note, write_note
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.whole_file import folder_when_whole, replaced_when_whole

_OWNER_ONLY = 0o600
_GZIP_LEVEL = 6
_FIELD_ID = b"PARQUET:field_id"
_PANDAS = b"pandas"
# Others are left out: whoever wrote them may tell of the true labels in them.
_PANDAS_KEYS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def output_schema(
    schema: pa.Schema,
    column: str,
    add_as: str | None,
    private: pa.DataType,
    notes: Mapping[str, Provenance] | None = None,
) -> pa.Schema:
    """The input's fields, with the private column in the label's place or behind the last one.

    Of the metadata of the schema, pandas' own (index, types) is kept, with an entry for the private
    column that is true, and ``notes`` on private columns are written; of the label's metadata the
    field id that other files know the column by.
    """
    fields, name = list(schema), add_as or column
    if add_as is None:
        label = schema.field(column)
        kept = {key: value for key, value in (label.metadata or {}).items() if key == _FIELD_ID}
        fields[schema.get_field_index(column)] = pa.field(column, private, metadata=kept)
    else:
        fields.append(pa.field(add_as, private))
    metadata = _pandas_metadata(schema, name, private)
    if notes:
        metadata[KEY] = write_note(notes)
    return pa.schema(fields, metadata=metadata or None)


def _pandas_metadata(schema: pa.Schema, name: str, private: pa.DataType) -> dict[bytes, bytes]:
    text = (schema.metadata or {}).get(_PANDAS)
    if text is None:
        return {}
    try:
        given = json.loads(text)
        known: dict[str, Any] = {key: given[key] for key in _PANDAS_KEYS if key in given}
        entries = {entry["field_name"]: entry for entry in known["columns"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}  # of an early version of pandas, or none of its own
    entries[name] = _entry(name, private)
    return {_PANDAS: json.dumps(known | {"columns": list(entries.values())}).encode()}


def _entry(name: str, private: pa.DataType) -> dict[str, Any]:
    numpy_type = "object" if private == pa.string() else str(private.to_pandas_dtype()().dtype)
    pandas_type = "unicode" if private == pa.string() else numpy_type
    return {
        "name": name,
        "field_name": name,
        "pandas_type": pandas_type,
        "numpy_type": numpy_type,
        "metadata": None,
    }


Randomize = Callable[..., NDArray[Any]]


@dataclass(frozen=True)
class _Private:
    """The private column: the arguments of ``rewrite_table``."""

    randomize: Randomize
    add_as: str | None
    whole: bool
    provenance: Provenance | None
    delimiter: str | None


def rewrite_table(
    table: TableReader,
    output: Path,
    randomize: Randomize,
    *,
    add_as: str | None = None,
    whole: bool = False,
    provenance: Provenance | None = None,
    delimiter: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    found: Found = say_removed,
) -> int:
    """Write the table with private labels to ``output``; returns the number of rows.

    The private column takes the label's place (and name), or stands behind the last column under
    the name ``add_as``. Numbers that are ``whole`` whatever the labels are become integers.
    ``provenance`` is what a Parquet file notes of the column. ``delimiter`` is that of CSV whose
    name says no other (None: a comma).

    A folder of parts becomes a folder of as many, under the same names. ``output`` may be ``-``:
    CSV on standard output, where what is written cannot be taken back.

    ``progress`` is called with the number of rows of each batch, ``found`` with the name of what a
    killed run left of this output, which is removed. The format follows the suffix of ``output``;
    its mode is at most that of the table.

    ``randomize`` takes labels [n], and ``ids=`` too if the table has an id column. Raises DataError
    if an id is null or stands in the table twice: finding that out needs 8 bytes a row.
    """
    private = _Private(randomize, add_as, whole, provenance, delimiter)
    for file in table.files:
        if private.add_as is not None and private.add_as in file.schema.names:
            raise refused(file.path, f"has a column {private.add_as!r} already")
        _check_format(file, output / file.path.name if table.parts else output, private)
    writing = _Writing(table, private, progress)
    if table.parts:
        most = stat.S_IMODE(table.path.stat().st_mode)
        with folder_when_whole(output, most=most, found=found) as folder:
            for part in table.parts:
                with _opened(part, folder / part.path.name, private, found) as out:
                    writing.write(part, out, _output_format(part.path))
            writing.refuse_duplicates()
    else:
        with _opened(table, output, private, found) as out:
            writing.write(table, out, _output_format(output))
            writing.refuse_duplicates()
    return writing.rows


class _Writing:
    """Randomizes the files of one table one after another."""

    def __init__(
        self, table: TableReader, private: _Private, progress: Callable[[int], None]
    ) -> None:
        self._table, self._private, self._progress = table, private, progress
        self._unique = UniqueIds()
        self.rows = 0

    def write(self, file: TableReader, output: BinaryIO, form: Format) -> None:
        """One file of the table, whole."""
        private, column = self._private, file.column
        notes = _notes(file, private)
        sink = _Sink(output, form, private, file.parquet_metadata(), private.add_as or column)
        with write_behind(sink.write) as write:
            for batch in read_ahead(_at_least_one(file)):
                labels = label_array(file.domain, column, batch.column(column))
                drawn = self._randomized(labels, file, batch)
                values = pa.array(drawn, type=_arrow_type(drawn, whole=private.whole))
                write(_with_private(batch, column, private.add_as, values, notes))
                self.rows += len(batch)
                self._progress(len(batch))
        sink.finish()

    def _randomized(
        self, labels: NDArray[Any], file: TableReader, batch: pa.RecordBatch
    ) -> NDArray[Any]:
        if file.id_column is None:
            drawn: NDArray[Any] = self._private.randomize(labels)
            return drawn
        ids = file.ids_of(batch)
        self._unique.add(ids)
        try:
            drawn = self._private.randomize(labels, ids=ids)
        except DuplicateIdError:
            self.refuse_duplicates()  # names the rows of the table, not those of the batch
            raise
        return drawn

    def refuse_duplicates(self) -> None:
        """Raise DataError if an id was seen twice."""
        try:
            self._unique.check(self._table.ids)
        except DuplicateIdError as error:
            raise refused(self._table.path, f"{self._table.id_column!r}: {error}") from None


def _notes(file: TableReader, private: _Private) -> dict[str, Provenance]:
    """What a Parquet file says of its private columns: the new one, and those that it had."""
    notes = {} if private.provenance is None else read_note(file.path, file.metadata)
    known = {name: entry for name, entry in notes.items() if name in file.schema.names}
    if private.provenance is not None:
        known[private.add_as or file.column] = private.provenance
    return known


@contextmanager
def _opened(
    table: TableReader, output: Path, private: _Private, found: Found
) -> Iterator[BinaryIO]:
    """Where the output goes: a file that is whole or not there, or standard output."""
    if is_stream(output):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    most = _most_mode(table, output, keeps_labels=private.add_as is not None)
    with replaced_when_whole(output, most=most, found=found) as file:
        yield file


def _most_mode(table: TableReader, output: Path, *, keeps_labels: bool) -> int:
    """What the output's mode may be: a copy is no more readable than the original.

    Only the mode of an output that is replaced may be wider, for its owner chose that; but not if
    the output holds true labels. Standard input has the mode of the file that it is; a pipe is its
    owner's alone.
    """
    if output.exists() and not keeps_labels:
        return 0o7777
    if is_stream(table.path):
        try:
            return stat.S_IMODE(os.fstat(sys.stdin.buffer.fileno()).st_mode)
        except OSError:  # no file at all
            return _OWNER_ONLY
    return stat.S_IMODE(table.path.stat().st_mode)


class _Sink:
    """A Parquet or CSV writer that learns its schema from the first batch."""

    def __init__(
        self,
        file: BinaryIO,
        form: Format,
        private: _Private,
        like: pq.FileMetaData | None,
        drawn: str,
    ) -> None:
        self._form, self._private, self._like, self._drawn = form, private, like, drawn
        self._packed: gzip.GzipFile | None = None
        if form.gzipped:  # without a time or a name: a keyed run repeats the file
            self._packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        self._file = file if self._packed is None else cast(BinaryIO, self._packed)
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            if self._form.is_text:
                options = pa_csv.WriteOptions(
                    quoting_style="needed", delimiter=_delimiter(self._form, self._private)
                )
                self._writer = pa_csv.CSVWriter(self._file, batch.schema, write_options=options)
            else:
                self._writer = ParquetSink(self._file, batch.schema, self._like, self._drawn)
        self._writer.write(batch)

    def finish(self) -> None:
        if self._form.is_text:
            self._writer.close()
        else:
            self._writer.finish()
        if self._packed is not None:
            self._packed.close()


def _output_format(output: Path) -> Format:
    form = format_of(output, stream=True)
    assert form is not None  # checked before
    return form


def _delimiter(form: Format, private: _Private) -> str:
    """A tab in .tsv, and elsewhere what the table has."""
    assert form.delimiter is not None
    return private.delimiter or "," if form.delimiter == "," else form.delimiter


def _check_format(table: TableReader, output: Path, private: _Private) -> None:
    """Raise DataError, before anything is drawn, if the output's format cannot hold the columns."""
    form = format_of(output, stream=True)
    if form is None:
        raise refused(
            output,
            "expected a .parquet or .csv name for the output (.tsv, .csv.gz and .tsv.gz, too)",
        )
    if form.is_text:
        for field in table.schema:
            kept = private.add_as is not None or field.name != table.column
            if kept and not _csv_holds(field.type):
                raise refused(output, f"CSV cannot hold {field.name!r}, a {field.type}")


def _csv_holds(kind: pa.DataType) -> bool:
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], names=["x"])
    try:
        pa_csv.write_csv(nulls, pa.BufferOutputStream())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _at_least_one(table: TableReader) -> Iterator[pa.RecordBatch]:
    """The batches, or one without rows, so that an empty table keeps its columns."""
    empty = True
    for batch in table.batches():
        empty = False
        yield batch
    if empty:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)


def _arrow_type(private: NDArray[Any], *, whole: bool) -> pa.DataType:
    if private.dtype == np.float64:
        return pa.int64() if whole else pa.float64()
    return pa.int64() if private.dtype == np.int64 else pa.string()


def _with_private(
    batch: pa.RecordBatch,
    column: str,
    add_as: str | None,
    values: pa.Array,
    notes: Mapping[str, Provenance],
) -> pa.RecordBatch:
    arrays = list(batch.columns)
    if add_as is None:
        arrays[batch.schema.get_field_index(column)] = values
    else:
        arrays.append(values)
    schema = output_schema(batch.schema, column, add_as, values.type, notes)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
