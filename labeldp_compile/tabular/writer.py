"""Rewrite a table with private labels; the result appears whole or not at all.

Rows are read ahead and written behind on one thread each (Arrow works without Python's lock).
"""

import itertools
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.columns.arrow import of_numbers
from labeldp_runtime.ids import CheckedIds
from labeldp_runtime.whole_file import Found, Sealed, say_removed
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, InputError, refused
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.csv_sink import (
    CsvSink,
    EditedCsv,
    Placement,
    TextOut,
    csv_holds,
    output_schema,
)
from labeldp_compile.tabular.formats import PLAIN, Format, TextForm, format_of, is_stream
from labeldp_compile.tabular.parquet_file import ParquetSink, read_footer
from labeldp_compile.tabular.provenance import Provenance, read_note
from labeldp_compile.tabular.reader import TableReader, no_rows
from labeldp_compile.tabular.selection import UniqueIds
from labeldp_compile.whole_file import (
    folder_when_whole,
    is_others,
    replaced_when_whole,
    require_folder,
    require_output,
    require_outside,
)

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each fetched while the one before it is in use."""
    end = object()
    with ThreadPoolExecutor(1) as reader:
        coming: Future[object] = reader.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = reader.submit(next, items, end)
            yield item  # type: ignore[misc]


@contextmanager
def write_behind(
    write: Callable[[T], None], size: Callable[[T], int], room: int
) -> Iterator[Callable[[T], None]]:
    """A function that hands an item to ``write`` on another thread, one at a time and in order.

    It returns at once while the sizes of the waiting items are at most ``room`` together. An error
    is raised by a later call, or at the end of the ``with`` block; waiting items are then not
    written.
    """
    thread = ThreadPoolExecutor(1)
    waiting: deque[tuple[int, Future[None]]] = deque()
    taken = 0

    def put(item: T) -> None:
        nonlocal taken
        own = size(item)
        while waiting and (taken + own > room or waiting[0][1].done()):
            before, future = waiting.popleft()
            future.result()
            taken -= before
        waiting.append((own, thread.submit(write, item)))
        taken += own

    try:
        yield put
        for _, future in waiting:
            future.result()
    finally:
        thread.shutdown(cancel_futures=True)


def use_small_pool() -> None:
    """Choose the pool of this process: jemalloc where this pyarrow has it, or else the system's.

    mimalloc, pyarrow's own choice, keeps a third more of a table of a hundred columns; the system's
    gives memory back page by page, and its pages are cleared again for a fifth of all CPU time
    (benchmarks/memory.py, benchmarks/tables.py).
    """
    has_jemalloc = "jemalloc" in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if has_jemalloc else pa.system_memory_pool())


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
    for column in table.schema if form.is_text else ():
        if not placement.goes(column.name) and not csv_holds(column.type):
            raise refused(
                output, f"CSV cannot hold {column.name!r}, a {column.type}: write Parquet"
            )
    return form


_OWNER_ONLY = 0o600
WAITING_BYTES = 1 << 25  # of rows that are drawn, and wait to be written
Randomize = Callable[..., Any]
Keep = Callable[[TableReader, pa.RecordBatch], NDArray[np.bool_]]


def require_rewritten(table: Path, output: Path, *others: Path | None, overwrite: bool) -> None:
    """Raise InputError unless a copy of a table can be written; nothing is read.

    The output must be none of the ``others`` either. A folder becomes a folder outside itself;
    ``-`` is standard input, or output.
    """
    if is_stream(output):
        if not is_stream(table) and table.is_dir():
            raise InputError(
                f"{table}: is a folder, whose parts are not one CSV: write to a folder"
            )
        return
    if not is_stream(table) and table.is_dir():
        require_outside(output, table)
        require_folder(output)
        return
    require_output(output, table, *others, overwrite=overwrite)


@dataclass
class Rewriting:
    """A copy of a table with private labels; ``run`` writes it.

    The private column takes the label's place (and name), or is added after the last column under
    the name ``add_as``. For joint labels, and for ``one_answer`` to them, see ``Placement``.

    A folder of parts becomes a folder of parts with the same names. ``output`` may be ``-``: CSV on
    standard output, where written rows cannot be removed after an error. The format follows the
    suffix of ``output``; its mode is at most that of the table.

    Attributes:
        randomize: takes labels [n], and ``ids=`` too if the table has an id column, ``columns=`` if
            it has columns of groups; of a joint label columns [n] by their names, and returns
            such columns (or one answer [n]).
        whole: whether the numbers of all columns, or of each, are whole for every label: such
            columns become integers.
        provenance: what a Parquet file notes of the columns.
        text: the form of CSV, whose name may say another delimiter.
        progress: called with the number of rows of each batch.
        found: called with the name of a leftover of a killed run, which is removed.
        keep: which rows [n] of a batch are drawn and written, by public columns; None: all.
        unlabelled: which rows [n] of those are written with nulls for labels; None: no row.
        sealed: called with the complete output and its rows, just before it gets its name.
        as_one: whether the parts of a folder become one file; they need the same columns.
        naming: a secret with which ``ids_name`` names the set of ids, once they were all seen.
        is_resumed: whether a later run names a sealed output that this one could not name.
        overwrite: whether a file that got its name meanwhile is replaced.
        rows: written so far.
        labels: of these, rows that have a label; counted only where nulls are public.
    """

    table: TableReader
    output: Path
    randomize: Randomize
    _: KW_ONLY
    add_as: str | None = None
    one_answer: bool = False
    whole: bool | Sequence[bool] = False
    provenance: Provenance | None = None
    text: TextForm = PLAIN
    progress: Callable[[int], None] = lambda rows: None
    found: Found = say_removed
    keep: Keep | None = None
    unlabelled: Keep | None = None
    sealed: Callable[[Path, int], None] = lambda path, rows: None
    as_one: bool = False
    is_resumed: bool = False
    overwrite: bool = True
    naming: bytes | None = None
    rows: int = field(default=0, init=False)
    labels: int = field(default=0, init=False)
    _read: int = field(default=0, init=False)

    @property
    def without_label(self) -> list[str]:
        """The warning about rows without a label, where nulls are public."""
        if not self.table.domain.keeps_nulls:
            return []
        return [f"{self.output}: {self.rows - self.labels:,} rows have no label, and stay null"]

    @property
    def private_names(self) -> list[str]:
        """The private columns of the output."""
        labels = self.table.label_columns
        return list(Placement.of(labels, self.add_as, one_answer=self.one_answer).names)

    @property
    def ids_name(self) -> str:
        """The name of the set of ids, from when the output is sealed; empty without ``naming``."""
        return self.unique.name

    def run(self) -> int:
        """Write the output; returns the number of rows.

        Raises DataError if there is no row, or if an id is null or is in the table twice. Finding
        that out needs 8 bytes per row, on the disk of ``output``, or in memory for standard output.
        """
        table, output = self.table, self.output
        self.placement = Placement.of(table.label_columns, self.add_as, one_answer=self.one_answer)
        is_folder = bool(table.parts) and not self.as_one
        forms = []
        for file in table.files:
            self.placement.require_free(file)
            name = output / file.path.relative_to(table.path) if is_folder else output
            forms.append((file, require_writable(file, name, self.placement)))
        folder = None if is_stream(output) else output.parent
        with closing(UniqueIds(folder, self.naming)) as self.unique:
            try:
                if not is_folder:
                    _require_same_columns(table.files)
                    self.write_file(table.files, forms[0][1], output)
                    return self.rows
                most = stat.S_IMODE(table.path.stat().st_mode)
                with folder_when_whole(
                    output, most=most, found=self.found, sealed=self._seal
                ) as new:
                    for part, form in forms:
                        name = new / part.path.relative_to(table.path)
                        name.parent.mkdir(parents=True, exist_ok=True)
                        self.write_file([part], form, name, is_part=True)
                    if not self._read:
                        raise refused(table.path, "has no rows")
                    self.refuse_duplicates()
            except (DataError, DuplicateIdError):
                self.refuse_duplicates()  # which came first
                raise
        return self.rows

    def write_file(
        self, files: Sequence[TableReader], form: Format, output: Path, *, is_part: bool = False
    ) -> None:
        """Write files, one after the other, to one file or to standard output.

        Raises DataError, and DuplicateIdError where a batch has an id twice. Unless the output
        ``is_part`` of a folder, it does not get its name if any two ids are the same.
        """
        first = files[0]
        with self._opened(files, output, None if is_part else self._seal) as out:
            read = ((file, *rows) for file in files for rows in read_ahead(_at_least_one(file)))
            batches = read if is_part else itertools.dropwhile(lambda rows: not len(rows[2]), read)
            if (start := next(batches, None)) is None:  # before a header is written
                raise refused(self.table.path, "has no rows")
            notes, placement = self._notes(first), self.placement
            sink = TableSink(out, form, first, placement, notes, self.text, keeps_folders=is_part)
            try:
                with write_behind(sink.write, _size, WAITING_BYTES) as write:
                    for file, cells, batch in itertools.chain([start], batches):
                        self._write_rows(file, cells, batch, write)
                sink.finish()
            except BaseException:
                sink.abandon()
                raise
            if not is_part:
                self.refuse_duplicates()

    def _write_rows(
        self,
        file: TableReader,
        cells: Cells | None,
        batch: pa.RecordBatch,
        write: Callable[[Rows], None],
    ) -> None:
        read = len(batch)
        self._read += read
        if self.keep is not None:
            chosen = self.keep(file, batch)
            cells = None if cells is None else cells.rows(chosen)
            batch = chosen_rows(batch, chosen)
        write((cells, batch, self._private(file, batch)))
        self.rows += len(batch)
        self.progress(read)

    def _seal(self, output: Path) -> None:
        self.sealed(output, self.rows)

    def refuse_duplicates(self) -> None:
        """Raise DataError if an id was seen twice; names the rows of the table."""
        try:
            self.unique.check(self.table.ids)
        except DuplicateIdError as error:
            raise refused(self.table.path, f"{self.table.id_column!r}: {error}") from None

    def _private(self, file: TableReader, batch: pa.RecordBatch) -> list[pa.Array]:
        """The private columns [n] of one batch as they are written."""
        drawn = self._drawn(file, batch)
        whole = [self.whole] * len(drawn) if isinstance(self.whole, bool) else self.whole
        private = [_arrow(column, whole=own) for column, own in zip(drawn, whole, strict=True)]
        without = np.zeros(len(batch), bool)
        if (labelled := file.has_label(batch)) is not None:
            self.labels += int(labelled.sum())
            without |= ~labelled
        elif self.unlabelled is None:
            return private
        if self.unlabelled is not None:
            without |= self.unlabelled(file, batch)
        rows = pa.array(np.arange(len(batch)), mask=without)
        return [column.take(rows) for column in private]

    def _drawn(self, file: TableReader, batch: pa.RecordBatch) -> list[NDArray[Any]]:
        """The private columns [n] of one batch, in the order of the label's."""
        labels = dict(zip(file.label_columns, file.labels_of(batch), strict=True))
        options: dict[str, Any] = {}
        if file.group_columns:
            options["columns"] = file.groups_of(batch)
        if file.id_column is not None:
            ids = file.ids_of(batch)
            self.unique.add(ids)
            # A file with an id twice does not get its name, so the randomizer need not look for
            # them.
            options["ids"] = ids if is_stream(self.output) else CheckedIds(ids)
        given = labels if len(labels) > 1 else next(iter(labels.values()))
        drawn = self.randomize(given, **options)
        return [drawn[name] for name in labels] if isinstance(drawn, dict) else [drawn]

    def _notes(self, file: TableReader) -> dict[str, Provenance]:
        """The notes of a Parquet file on its private columns: the new one, and earlier ones."""
        if self.provenance is None:
            return {}
        notes = read_note(file.path, file.metadata)
        stay = [name for name in file.schema.names if name not in self.placement.dropped]
        known = {name: entry for name, entry in notes.items() if name in stay}
        return known | dict.fromkeys(self.placement.names, self.provenance)

    @contextmanager
    def _opened(
        self, files: Sequence[TableReader], output: Path, sealed: Sealed | None
    ) -> Iterator[BinaryIO]:
        """Where the output goes: a file that is whole or not there, or standard output."""
        if is_stream(output):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        keeps = self.placement.keeps_labels
        modes = [_most_mode(file, output, keeps_labels=keeps) for file in files]
        most = reduce(and_, modes)
        with replaced_when_whole(
            output, most=most, found=self.found, sealed=sealed, is_resumed=self.is_resumed
        ) as out:
            require_output(output, overwrite=self.overwrite)  # another run may have been faster
            yield out


def _require_same_columns(files: Sequence[TableReader]) -> None:
    """Raise DataError unless rows of all files can follow one another in one file."""
    first = files[0]
    for file in files[1:]:
        same = file.schema.equals(first.schema) and (
            (file.csv and file.csv.delimiter) == (first.csv and first.csv.delimiter)
        )
        if not same:
            raise refused(
                file.path,
                f"has other columns, types or delimiters than {first.path.name}: parts that become "
                "one part need the same",
            )


def _most_mode(table: TableReader, output: Path, *, keeps_labels: bool) -> int:
    """The most permissive mode of the output: a copy is no more readable than the original.

    A file of this user that is replaced keeps its mode, which its owner chose, unless the output
    holds true labels. Standard input has the mode of its file; of a pipe only the owner may read.
    """
    if output.exists() and not is_others(output.stat()) and not keeps_labels:
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
