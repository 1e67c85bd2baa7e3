"""Rewrite a table with one column replaced or added; the result appears whole or not at all."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from labeldp_runtime import DuplicateIdError
from labeldp_runtime.whole_file import Found, say_removed

from labeldp_compile.errors import DataError, InputError, refused
from labeldp_compile.tabular.formats import is_stream
from labeldp_compile.tabular.one_file import Listener, Private, Randomize, write_file
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.tabular.table_sink import check_format, output_format
from labeldp_compile.tabular.unique_ids import UniqueIds
from labeldp_compile.whole_file import (
    folder_when_whole,
    require_folder,
    require_output,
)


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
    require_output(output, table, overwrite=overwrite)


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
    out needs 8 bytes a row of the disk on which ``output`` is, or of memory for standard output.
    """
    placement = Placement.of(table.label_columns, add_as, one_answer=one_answer)
    each = [whole] * len(placement.names) if isinstance(whole, bool) else whole
    private = Private(randomize, placement, each, provenance, delimiter)
    for file in table.files:
        placement.require_free(file)
        check_format(file, output / file.path.name if table.parts else output, placement)
    with closing(UniqueIds(None if is_stream(output) else output.parent)) as unique:
        seen = _Seen(table, unique, progress)
        try:
            _rewrite(table, output, private, seen, found)
        except (DataError, DuplicateIdError):
            seen.refuse_duplicates()  # which came first; and names the rows of the table
            raise
    return seen.rows


def _rewrite(table: TableReader, output: Path, private: Private, seen: _Seen, found: Found) -> None:
    if not table.parts:
        listener = Listener(
            seen.add_rows, seen.unique.add, seen.refuse_duplicates, not is_stream(output)
        )
        write_file(table, output, output_format(output), private, listener, found)
        return
    listener = Listener(seen.add_rows, seen.unique.add)
    most = stat.S_IMODE(table.path.stat().st_mode)
    with folder_when_whole(output, most=most, found=found) as folder:
        for part in table.parts:
            form, place = output_format(part.path), folder / part.path.name
            write_file(part, place, form, private, listener, found)
        seen.refuse_duplicates()


class _Seen:
    """The rows of a table so far, and their ids."""

    def __init__(
        self, table: TableReader, unique: UniqueIds, progress: Callable[[int], None]
    ) -> None:
        self._table, self._progress = table, progress
        self.unique, self.rows = unique, 0

    def add_rows(self, rows: int) -> None:
        self.rows += rows
        self._progress(rows)

    def refuse_duplicates(self) -> None:
        """Raise DataError if an id was seen twice."""
        try:
            self.unique.check(self._table.ids)
        except DuplicateIdError as error:
            raise refused(self._table.path, f"{self._table.id_column!r}: {error}") from None
