"""Rewrite a table with one column replaced or added; the result appears whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.duplicates import UniqueIds
from labeldp_runtime.whole_file import Found, say_removed
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.formats import Format, is_stream
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance, read_note
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.tabular.table_sink import Rows, TableSink, check_format, output_format
from labeldp_compile.whole_file import (
    folder_when_whole,
    replaced_when_whole,
    require_another_file,
    require_folder,
    require_output,
)

_OWNER_ONLY = 0o600
_WAITING_BYTES = 1 << 26  # of rows that are drawn, and wait to be written
_KEYED_ROWS = 1 << 15  # whose ids are looked through in a core's cache
Randomize = Callable[..., Any]
_Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class _Private:
    """The private columns: the arguments of ``rewrite_table``."""

    randomize: Randomize
    placement: Placement
    whole: Sequence[bool]
    provenance: Provenance | None
    delimiter: str | None


def require_rewritten(table: Path, output: Path, *, overwrite: bool) -> None:
    """Raise InputError unless a copy of a table can be written; nothing is read.

    A folder becomes a folder outside itself; ``-`` is standard input, or output.
    """
    if is_stream(output):
        if not is_stream(table) and table.is_dir():
            raise InputError(f"{table}: is a folder, and its parts are not one CSV: name a folder")
        return
    if not is_stream(table) and table.is_dir():
        inside = output.absolute().parent.resolve()
        if inside.is_relative_to(table.resolve()):
            raise InputError(f"{output}: lies in the input; write to another folder")
        require_folder(output)
        return
    require_another_file(output, [table])
    require_output(output, overwrite=overwrite)


def rewrite_table(
    table: TableReader,
    output: Path,
    randomize: Randomize,
    *,
    add_as: str | None = None,
    one_answer: bool = False,
    whole: bool | Sequence[bool] = False,
    provenance: Provenance | None = None,
    delimiter: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    found: Found = say_removed,
) -> int:
    """Write the table with private labels to ``output``; returns the number of rows.

    The private column takes the label's place (and name), or stands behind the last column under
    the name ``add_as``; for those of a joint label, and for ``one_answer`` to all of them, see
    ``Placement``. Numbers of columns that are ``whole`` whatever the labels are
    become integers.
    ``provenance`` is what a Parquet file notes of the columns. ``delimiter`` is that of CSV whose
    name says no other (None: a comma).

    A folder of parts becomes a folder of as many, under the same names. ``output`` may be ``-``:
    CSV on standard output, where what is written cannot be taken back.

    ``progress`` is called with the number of rows of each batch, ``found`` with the name of what a
    killed run left of this output, which is removed. The format follows the suffix of ``output``;
    its mode is at most that of the table.

    ``randomize`` takes labels [n], and ``ids=`` too if the table has an id column, ``columns=`` if
    it has columns of groups; of a joint label columns [n] by their names, and gives such back (or
    one answer [n]). Raises DataError if an id is null or stands in the table twice: finding that
    out needs 8 bytes a row.
    """
    placement = Placement.of(table.label_columns, add_as, one_answer=one_answer)
    each = [whole] * len(placement.names) if isinstance(whole, bool) else whole
    private = _Private(randomize, placement, each, provenance, delimiter)
    for file in table.files:
        placement.require_free(file)
        check_format(file, output / file.path.name if table.parts else output, placement)
    writing = _Writing(table, private, progress)
    if table.parts:
        most = stat.S_IMODE(table.path.stat().st_mode)
        with folder_when_whole(output, most=most, found=found) as folder:
            for part in table.parts:
                with _opened(part, folder / part.path.name, private, found) as out:
                    writing.write(part, out, output_format(part.path))
            writing.refuse_duplicates()
    else:
        with _opened(table, output, private, found) as out:
            writing.write(table, out, output_format(output))
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
        private = self._private
        sink = TableSink(
            output, form, file, private.placement, _notes(file, private), private.delimiter
        )
        with write_behind(sink.write, _size, _WAITING_BYTES) as write:
            for block, batch in read_ahead(_at_least_one(file)):
                drawn = self._randomized(file, batch)
                values = [_arrow(y, whole=w) for y, w in zip(drawn, private.whole, strict=True)]
                write((block, batch, values))
                self.rows += len(batch)
                self._progress(len(batch))
        sink.finish()

    def _randomized(self, file: TableReader, batch: pa.RecordBatch) -> list[NDArray[Any]]:
        """The private columns [n] of one batch."""
        labels = dict(zip(file.label_columns, file.labels_of(batch), strict=True))
        groups = file.groups_of(batch) if file.group_columns else {}
        if file.id_column is None:
            return _columns_of(self._drawn(labels, groups), labels)
        ids = file.ids_of(batch)
        self._unique.add(ids)
        parts = []
        for start in range(0, max(len(ids), 1), _KEYED_ROWS):
            here = slice(start, start + _KEYED_ROWS)
            some, others = ({n: c[here] for n, c in part.items()} for part in (labels, groups))
            try:
                drawn = self._drawn(some, others, ids=ids[here])
            except DuplicateIdError:
                self.refuse_duplicates()  # names the rows of the table, not those of the batch
                raise
            parts.append(_columns_of(drawn, labels))
        return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]

    def _drawn(self, labels: _Arrays, groups: _Arrays, **ids: Any) -> Any:
        columns = {"columns": groups} if groups else {}
        only = labels if len(labels) > 1 else next(iter(labels.values()))
        return self._private.randomize(only, **ids, **columns)

    def refuse_duplicates(self) -> None:
        """Raise DataError if an id was seen twice."""
        try:
            self._unique.check(self._table.ids)
        except DuplicateIdError as error:
            raise refused(self._table.path, f"{self._table.id_column!r}: {error}") from None


def _columns_of(drawn: Any, labels: _Arrays) -> list[NDArray[Any]]:
    """The private columns [n] in the order of the label's."""
    return [drawn[name] for name in labels] if isinstance(drawn, dict) else [drawn]


def _notes(file: TableReader, private: _Private) -> dict[str, Provenance]:
    """What a Parquet file says of its private columns: the new one, and those that it had."""
    notes = {} if private.provenance is None else read_note(file.path, file.metadata)
    known = {name: entry for name, entry in notes.items() if name in file.schema.names}
    for name in private.placement.dropped:
        known.pop(name, None)
    if private.provenance is not None:
        known.update(dict.fromkeys(private.placement.names, private.provenance))
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


def _at_least_one(table: TableReader) -> Iterator[tuple[bytes, pa.RecordBatch]]:
    """Text (of CSV) and batches, or a batch without rows, so that an empty table keeps columns."""
    empty = True
    parts = ((b"", batch) for batch in table.batches()) if table.csv is None else table.blocks()
    for part in parts:
        empty = False
        yield part
    if empty:
        yield b"", pa.RecordBatch.from_pylist([], schema=table.schema)


def _size(rows: Rows) -> int:
    """Bytes of some rows in memory."""
    size: int = rows[1].nbytes
    return len(rows[0]) + size


def _arrow(private: NDArray[Any], *, whole: bool) -> pa.Array:
    """Private labels [n]; numbers that are ``whole`` as integers."""
    if private.dtype not in (np.float64, np.int64):
        return pa.array(private, type=pa.string())
    # pa.array would import pandas, where there is one, for a third of a second.
    kind = pa.float64() if private.dtype == np.float64 else pa.int64()
    data = pa.py_buffer(np.ascontiguousarray(private))
    numbers = pa.Array.from_buffers(kind, len(private), [None, data])
    return numbers.cast(pa.int64()) if whole else numbers
