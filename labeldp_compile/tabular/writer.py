"""Rewrite a table with one column replaced or added; the result appears whole or not at all."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.duplicates import UniqueIds
from labeldp_runtime.ids import Ids
from labeldp_runtime.whole_file import Found, say_removed
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.label_column import label_array
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.whole_file import replaced_when_whole

_FIELD_ID = b"PARQUET:field_id"
_PANDAS = b"pandas"
# Others are left out: whoever wrote them may tell of the true labels in them.
_PANDAS_KEYS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def output_schema(
    schema: pa.Schema, column: str, add_as: str | None, private: pa.DataType
) -> pa.Schema:
    """The input's fields, with the private column in the label's place or behind the last one.

    Of the metadata of the schema, pandas' own (index, types) is kept, with an entry for the private
    column that is true; of the label's metadata the field id that other files know the column by.
    """
    fields, name = list(schema), add_as or column
    if add_as is None:
        label = schema.field(column)
        kept = {key: value for key, value in (label.metadata or {}).items() if key == _FIELD_ID}
        fields[schema.get_field_index(column)] = pa.field(column, private, metadata=kept)
    else:
        fields.append(pa.field(add_as, private))
    return pa.schema(fields, metadata=_metadata(schema, name, private))


def _metadata(schema: pa.Schema, name: str, private: pa.DataType) -> dict[bytes, bytes] | None:
    text = (schema.metadata or {}).get(_PANDAS)
    if text is None:
        return None
    try:
        given = json.loads(text)
        known: dict[str, Any] = {key: given[key] for key in _PANDAS_KEYS if key in given}
        entries = {entry["field_name"]: entry for entry in known["columns"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return None  # of an early version of pandas, or none of its own
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


def rewrite_table(
    table: TableReader,
    output: Path,
    randomize: Randomize,
    *,
    add_as: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    found: Found = say_removed,
) -> int:
    """Write the table with private labels to ``output``; returns the number of rows.

    The private column takes the label's place (and name), or stands behind the last column under
    the name ``add_as``. ``progress`` is called with the number of rows of each batch, ``found``
    with the name of what a killed run left of this output, which is removed. The format follows
    the suffix of ``output``; its mode is at most that of the table.

    ``randomize`` takes labels [n], and ``ids=`` too if the table has an id column. Raises DataError
    if an id is null or stands in the table twice: finding that out needs 8 bytes a row.
    """
    if add_as is not None and add_as in table.schema.names:
        raise refused(table.path, f"has a column {add_as!r} already")
    _check_format(table, output, keeps_labels=add_as is not None)
    rows, unique = 0, UniqueIds()
    most = _most_mode(table, output, keeps_labels=add_as is not None)
    with replaced_when_whole(output, most=most, found=found) as file:
        is_csv = output.suffix.lower() == ".csv"
        sink = _Sink(file, is_csv, table.parquet_metadata(), add_as or table.column)
        with write_behind(sink.write) as write:
            for batch in read_ahead(_at_least_one(table)):
                labels = label_array(table.domain, table.column, batch.column(table.column))
                if table.id_column is None:
                    private = randomize(labels)
                else:
                    private = _with_ids(table, table.ids_of(batch), labels, randomize, unique)
                values = pa.array(private, type=_arrow_type(private))
                write(_with_private(batch, table.column, add_as, values))
                rows += len(batch)
                progress(len(batch))
        sink.finish()
        _refuse_duplicates(table, unique)
    return rows


def _most_mode(table: TableReader, output: Path, *, keeps_labels: bool) -> int:
    """What the output's mode may be: a copy is no more readable than the original.

    Only the mode of an output that is replaced may be wider, for its owner chose that; but not if
    the output holds true labels.
    """
    if output.exists() and not keeps_labels:
        return 0o7777
    return stat.S_IMODE(table.path.stat().st_mode)


def _with_ids(
    table: TableReader,
    ids: Ids,
    labels: NDArray[Any],
    randomize: Randomize,
    unique: UniqueIds,
) -> NDArray[Any]:
    unique.add(ids)
    try:
        return randomize(labels, ids=ids)
    except DuplicateIdError:
        _refuse_duplicates(table, unique)  # names the rows of the table, not those of the batch
        raise


def _refuse_duplicates(table: TableReader, unique: UniqueIds) -> None:
    try:
        unique.check(table.ids)
    except DuplicateIdError as error:
        raise refused(table.path, f"{table.id_column!r}: {error}") from None


class _Sink:
    """A Parquet or CSV writer that learns its schema from the first batch."""

    def __init__(
        self, file: BinaryIO, is_csv: bool, like: pq.FileMetaData | None, drawn: str
    ) -> None:
        self._file, self._is_csv, self._like, self._drawn = file, is_csv, like, drawn
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            if self._is_csv:
                options = pa_csv.WriteOptions(quoting_style="needed")
                self._writer = pa_csv.CSVWriter(self._file, batch.schema, write_options=options)
            else:
                self._writer = ParquetSink(self._file, batch.schema, self._like, self._drawn)
        self._writer.write(batch)

    def finish(self) -> None:
        if self._is_csv:
            self._writer.close()
        else:
            self._writer.finish()


def _check_format(table: TableReader, output: Path, *, keeps_labels: bool) -> None:
    """Raise DataError, before anything is drawn, if the output's format cannot hold the columns."""
    suffix = output.suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq"):
        raise refused(output, "expected a .parquet or .csv name for the output")
    if suffix == ".csv":
        for field in table.schema:
            kept = keeps_labels or field.name != table.column
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


def _arrow_type(private: NDArray[Any]) -> pa.DataType:
    if private.dtype == np.float64:
        return pa.float64()
    return pa.int64() if private.dtype == np.int64 else pa.string()


def _with_private(
    batch: pa.RecordBatch, column: str, add_as: str | None, values: pa.Array
) -> pa.RecordBatch:
    arrays = list(batch.columns)
    if add_as is None:
        arrays[batch.schema.get_field_index(column)] = values
    else:
        arrays.append(values)
    schema = output_schema(batch.schema, column, add_as, values.type)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
