"""Write one file of a table with private labels: whole, or not there."""

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
from labeldp_runtime.columns.arrow import of_numbers
from labeldp_runtime.ids import CheckedIds
from labeldp_runtime.whole_file import Found
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.background import read_ahead, write_behind
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.formats import Format, is_stream
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance, read_note
from labeldp_compile.tabular.reader import TableReader, no_rows
from labeldp_compile.tabular.table_sink import Rows, TableSink
from labeldp_compile.tabular.unique_ids import UniqueIds
from labeldp_compile.whole_file import replaced_when_whole

_OWNER_ONLY = 0o600
WAITING_BYTES = 1 << 25  # of rows that are drawn, and wait to be written
Randomize = Callable[..., Any]


@dataclass
class Rewriting:
    """A run of ``rewrite_table``: its arguments, and the rows and ids so far."""

    table: TableReader
    output: Path
    randomize: Randomize
    placement: Placement
    whole: Sequence[bool]
    provenance: Provenance | None
    delimiter: str | None
    progress: Callable[[int], None]
    found: Found
    unique: UniqueIds
    rows: int = 0

    def write_file(self, file: TableReader, form: Format, output: Path) -> None:
        """Write one file, or standard output, and fill it.

        Raises DataError, and DuplicateIdError where a batch has an id twice. The only file of a
        table does not get its name if any two ids are the same.
        """
        with self._opened(file, output) as out:
            sink = TableSink(out, form, file, self.placement, self._notes(file), self.delimiter)
            try:
                with write_behind(sink.write, _size, WAITING_BYTES) as write:
                    for cells, batch in read_ahead(_at_least_one(file)):
                        drawn = zip(self._drawn(file, batch), self.whole, strict=True)
                        write((cells, batch, [_arrow(y, whole=whole) for y, whole in drawn]))
                        self.rows += len(batch)
                        self.progress(len(batch))
                sink.finish()
            except BaseException:
                sink.abandon()
                raise
            if file is self.table:
                self.refuse_duplicates()

    def refuse_duplicates(self) -> None:
        """Raise DataError if an id was seen twice; names the rows of the table."""
        try:
            self.unique.check(self.table.ids)
        except DuplicateIdError as error:
            raise refused(self.table.path, f"{self.table.id_column!r}: {error}") from None

    def _drawn(self, file: TableReader, batch: pa.RecordBatch) -> list[NDArray[Any]]:
        """The private columns [n] of one batch, in the order of the label's."""
        labels = dict(zip(file.label_columns, file.labels_of(batch), strict=True))
        options: dict[str, Any] = {}
        if file.group_columns:
            options["columns"] = file.groups_of(batch)
        if file.id_column is not None:
            ids = file.ids_of(batch)
            self.unique.add(ids)
            # Where ids that come twice keep the file from its name, nobody else need look for them.
            options["ids"] = ids if is_stream(self.output) else CheckedIds(ids)
        given = labels if len(labels) > 1 else next(iter(labels.values()))
        drawn = self.randomize(given, **options)
        return [drawn[name] for name in labels] if isinstance(drawn, dict) else [drawn]

    def _notes(self, file: TableReader) -> dict[str, Provenance]:
        """What a Parquet file says of its private columns: the new one, and those that it had."""
        if self.provenance is None:
            return {}
        notes = read_note(file.path, file.metadata)
        stay = [name for name in file.schema.names if name not in self.placement.dropped]
        known = {name: entry for name, entry in notes.items() if name in stay}
        return known | dict.fromkeys(self.placement.names, self.provenance)

    @contextmanager
    def _opened(self, file: TableReader, output: Path) -> Iterator[BinaryIO]:
        """Where the output goes: a file that is whole or not there, or standard output."""
        if is_stream(output):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        most = _most_mode(file, output, keeps_labels=self.placement.keeps_labels)
        with replaced_when_whole(output, most=most, found=self.found) as out:
            yield out


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
