"""Rewrite a table with one column replaced or added; the result appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.duplicates import UniqueIds
from labeldp_runtime.ids import Ids
from numpy.typing import NDArray

from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.label_column import label_array
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.tabular.refusal import refused

Randomize = Callable[..., NDArray[Any]]


def rewrite_table(
    table: TableReader,
    output: Path,
    randomize: Randomize,
    *,
    add_as: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write the table with private labels to ``output``; returns the number of rows.

    The private column takes the label's place (and name), or stands behind the last column under
    the name ``add_as``. ``progress`` is called with the number of rows of each batch. The format
    follows the suffix of ``output``.

    ``randomize`` takes labels [n], and ``ids=`` too if the table has an id column. Raises DataError
    if an id is null or stands in the table twice: finding that out needs 8 bytes a row.
    """
    if add_as is not None and add_as in table.schema.names:
        raise refused(table.path, f"has a column {add_as!r} already")
    _check_format(table, output, keeps_labels=add_as is not None)
    rows, unique = 0, UniqueIds()
    with (
        replaced_when_whole(output) as temporary,
        _Sink(temporary, output.suffix.lower()) as sink,
        write_behind(sink.write) as write,
    ):
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
        _refuse_duplicates(table, unique)
    return rows


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


@contextmanager
def replaced_when_whole(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that is renamed to it at the end, or removed on failure."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        _flush(temporary)
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or "the disk or the folder refuses it"
        raise refused(path, f"cannot be written: {reason}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


class _Sink:
    """A Parquet or CSV writer that learns its schema from the first batch."""

    def __init__(self, path: Path, suffix: str) -> None:
        self._path, self._is_csv = path, suffix == ".csv"
        self._writer: Any = None

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            if self._is_csv:
                options = pa_csv.WriteOptions(quoting_style="needed")
                self._writer = pa_csv.CSVWriter(self._path, batch.schema, write_options=options)
            else:
                self._writer = pq.ParquetWriter(self._path, batch.schema)
        self._writer.write_batch(batch)


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
    names, arrays = list(batch.schema.names), list(batch.columns)
    fields = list(batch.schema)
    if add_as is None:
        position = names.index(column)
        arrays[position], fields[position] = values, pa.field(column, values.type)
    else:
        arrays.append(values)
        fields.append(pa.field(add_as, values.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
