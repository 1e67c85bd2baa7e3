"""Write one file of a table with private labels: whole, or not there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import of_numbers
from labeldp_runtime.ids import CheckedIds, Ids
from labeldp_runtime.whole_file import Found
from numpy.typing import NDArray

from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.formats import Format, is_stream
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance, read_note
from labeldp_compile.tabular.reader import TableReader, no_rows
from labeldp_compile.tabular.table_sink import Rows, TableSink
from labeldp_compile.whole_file import replaced_when_whole

_OWNER_ONLY = 0o600
WAITING_BYTES = 1 << 25  # of rows that are drawn, and wait to be written
Randomize = Callable[..., Any]
_Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Private:
    """The private columns: the arguments of ``rewrite_table``."""

    randomize: Randomize
    placement: Placement
    whole: Sequence[bool]
    provenance: Provenance | None
    delimiter: str | None


@dataclass(frozen=True)
class Listener:
    """Who is told of the rows that are written.

    Attributes:
        rows: called with the number of rows of each batch.
        ids: called with the ids of each batch before it is randomized, if there are any.
        end: called before the file gets its name: what it raises keeps the file from it.
        keeps_back: whether ids that come twice keep the file from its name, and so need not be
            found before their labels are drawn.
    """

    rows: Callable[[int], None] = lambda rows: None
    ids: Callable[[Ids], None] = lambda ids: None
    end: Callable[[], None] = lambda: None
    keeps_back: bool = True


def write_file(
    file: TableReader,
    output: Path,
    form: Format,
    private: Private,
    listener: Listener,
    found: Found,
) -> None:
    """Write one file, or standard output, and fill it.

    Raises DataError, and DuplicateIdError where a batch has an id twice.
    """
    with _opened(file, output, private, found) as out:
        notes = _notes(file, private)
        sink = TableSink(out, form, file, private.placement, notes, private.delimiter)
        try:
            _write_rows(file, sink, private, listener)
        except BaseException:
            sink.abandon()
            raise
        if file.id_column is None or is_stream(output):
            listener.end()
            return
        out.flush()
        with ThreadPoolExecutor(1) as disk:  # which is slow, while ids are compared
            synced = disk.submit(os.fsync, out.fileno())
            listener.end()
            synced.result()


def _write_rows(file: TableReader, sink: TableSink, private: Private, listener: Listener) -> None:
    with write_behind(sink.write, _size, WAITING_BYTES) as write:
        for block, batch in read_ahead(_at_least_one(file)):
            drawn = _randomized(file, batch, private.randomize, listener)
            values = [_arrow(y, whole=w) for y, w in zip(drawn, private.whole, strict=True)]
            write((block, batch, values))
            listener.rows(len(batch))
    sink.finish()


def _randomized(
    file: TableReader, batch: pa.RecordBatch, randomize: Randomize, listener: Listener
) -> list[NDArray[Any]]:
    """The private columns [n] of one batch."""
    labels = dict(zip(file.label_columns, file.labels_of(batch), strict=True))
    groups = file.groups_of(batch) if file.group_columns else {}
    if file.id_column is None:
        return _columns_of(_drawn(randomize, labels, groups), labels)
    ids = file.ids_of(batch)
    listener.ids(ids)
    given = CheckedIds(ids) if listener.keeps_back else ids
    return _columns_of(_drawn(randomize, labels, groups, ids=given), labels)


def _drawn(randomize: Randomize, labels: _Arrays, groups: _Arrays, **ids: Any) -> Any:
    columns = {"columns": groups} if groups else {}
    only = labels if len(labels) > 1 else next(iter(labels.values()))
    return randomize(only, **ids, **columns)


def _columns_of(drawn: Any, labels: _Arrays) -> list[NDArray[Any]]:
    """The private columns [n] in the order of the label's."""
    return [drawn[name] for name in labels] if isinstance(drawn, dict) else [drawn]


def _notes(file: TableReader, private: Private) -> dict[str, Provenance]:
    """What a Parquet file says of its private columns: the new one, and those that it had."""
    notes = {} if private.provenance is None else read_note(file.path, file.metadata)
    known = {name: entry for name, entry in notes.items() if name in file.schema.names}
    for name in private.placement.dropped:
        known.pop(name, None)
    if private.provenance is not None:
        known.update(dict.fromkeys(private.placement.names, private.provenance))
    return known


@contextmanager
def _opened(table: TableReader, output: Path, private: Private, found: Found) -> Iterator[BinaryIO]:
    """Where the output goes: a file that is whole or not there, or standard output."""
    if is_stream(output):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    most = _most_mode(table, output, keeps_labels=private.placement.keeps_labels)
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


def _at_least_one(table: TableReader) -> Iterator[tuple[Cells | None, pa.RecordBatch]]:
    """Cells (of CSV) and batches, or a batch without rows, so that an empty table keeps columns."""
    parts: Iterator[tuple[Cells | None, pa.RecordBatch]] = (
        ((None, batch) for batch in table.batches()) if table.csv is None else table.blocks()
    )
    yield next(parts, (None, no_rows(table.schema)))
    yield from parts


def _size(rows: Rows) -> int:
    """Bytes of some rows in memory."""
    size: int = rows[1].nbytes
    return size if rows[0] is None else len(rows[0].text) + size


def _arrow(private: NDArray[Any], *, whole: bool) -> pa.Array:
    """Private labels [n]; numbers that are ``whole`` as integers."""
    if private.dtype not in (np.float64, np.int64):
        return pa.array(private, type=pa.string())
    if whole and private.dtype == np.float64:
        integers = private.astype(np.int64)
        assert np.array_equal(integers, private)
        return of_numbers(integers)
    return of_numbers(private)
