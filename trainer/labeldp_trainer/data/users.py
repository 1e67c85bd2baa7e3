"""Which rows of a user take part, and rows of a large table by user. Nothing here reads a label.

A hash of the rows' places chooses which rows of a user take part. So every way of reading a table
takes the same ones.
"""

from __future__ import annotations

import contextlib
import mmap
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int, Int64

from labeldp_compile.toolkit import Persons, persons_of
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.features import disk_room
from labeldp_trainer.data.labels import Cells, numbers, places
from labeldp_trainer.data.table import TableColumns, TableRows, hashed, joined


def owner_digests(column: Any, source: str, name: str) -> Persons:
    """Of the user of each row, [n]: equal for rows of one user (``labeldp_compile.tabular``).

    ``column`` is a column [n] of ``DataPart.columns``; ``source`` and ``name`` are for messages.
    Raises DataError if a row has no user, or the type of the column cannot name users.
    """
    values = column.values if isinstance(column, Cells) else column
    return persons_of(source, name, values)


class UserRows(NamedTuple):
    """`rows` into the data, by user and example, and which of them are `present`."""

    rows: Int64[np.ndarray, "u e"]
    present: Bool[np.ndarray, "u e"]


def rows_of_users(
    owners: Int[np.ndarray, " n"],
    max_examples: int,
    seed: int,
    where: Int64[np.ndarray, " n"] | None = None,
) -> UserRows:
    """Rows by user, at most `max_examples` each: those that `turns` puts first.

    owners: the numbers 0 … u − 1 of the users, each of whom has a row. There are
    `max_examples` slots a user; one that is not present repeats one of the user's rows. Users are
    in the order of their numbers. where: places of the rows; of one file if they are None.
    """
    if max_examples < 1:
        raise ValueError(f"max_examples must be at least 1; it is {max_examples}")
    counts = np.bincount(owners)
    if not counts.all():
        raise ValueError("a user between 0 and the largest number has no row")
    order = np.lexsort((turns(np.arange(len(owners)) if where is None else where, seed), owners))
    first = np.cumsum(counts) - counts
    slot = np.arange(max_examples)[None, :]
    present = slot < counts[:, None]
    return UserRows(order[first[:, None] + np.where(present, slot, 0)], present)


def turns(where: Int64[np.ndarray, " n"], seed: int) -> Int64[np.ndarray, " n"]:
    """The order in which rows of a user are taken; different for different places."""
    return hashed(where, seed)


@dataclass(frozen=True)
class UserBound:
    """How many rows of a user take part, and which.

    Attributes:
        column: of the users.
        most: rows of one.
        seed: of the choice.
    """

    column: str
    most: int
    seed: int

    @classmethod
    def of(cls, loaded: LoadedConfig) -> Self | None:
        """None if each label is on its own."""
        column, most = loaded.config.user_column, loaded.config.examples_per_user
        if column is None or most is None:
            return None
        return cls(column, most, loaded.config.training.seed)


def taking_part(
    persons: Persons,
    where: Int64[np.ndarray, " n"],
    bound: UserBound,
) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Of all rows of some users, at these places, those that take part, user by user; and their
    users' numbers."""
    order = np.lexsort((turns(where, bound.seed), persons))
    owners = np.cumsum(np.diff(persons[order], prepend=persons[order[:1]]) != 0)
    first = np.searchsorted(owners, owners)
    kept = np.arange(len(order)) - first < bound.most
    return order[kept], owners[kept]


_MOST_FILES, _ROWS = 128, 1 << 18  # open files, and about the rows of one


class RowsByUser:
    """The rows of a table that take part, user by user, as often as they are asked for.

    They are kept, with their labels, in files that have no name and are gone with the process (in
    TMPDIR). All rows of a user are in one of them. A label is a number there, or the place of a
    class: the size of the files says nothing of labels.
    """

    def __init__(self, table: TableRows, config: TableData, bound: UserBound) -> None:
        """Read the table. Raises DataError."""
        self.source, self._bound = table.source, bound
        self._label, self._classes = config.label, config.class_list
        count, self._kept = min(_MOST_FILES, -(-table.rows // _ROWS)), list[Any]()
        files, empty, writers = dict[Any, Any](), list[TableColumns](), list[Any]()
        with disk_room("the rows of users"), contextlib.ExitStack() as opened:
            kept = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
            for batch in table.batches():
                persons = owner_digests(batch.others[bound.column], batch.source, bound.column)
                rows = self._packed(batch, persons)
                files |= dict(batch.files)
                empty = [joined(self.source, [*empty, batch.part(slice(0))])]  # of the same types
                if not writers:
                    writers += [pa.ipc.new_stream(file, rows.schema) for file in kept]
                of_file = hashed(persons) % count
                rows = rows.take(pa.array(np.argsort(of_file, kind="stable")))
                sizes = np.bincount(of_file, minlength=count)
                for writer, size, end in zip(writers, sizes, np.cumsum(sizes), strict=True):
                    if size:
                        writer.write_batch(rows.slice(end - size, size))
            for writer, file in zip(writers, kept, strict=True):
                writer.close()
                file.flush()
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                file.close()
                self._kept.append(pa.py_buffer(mapped))
        self._empty = replace(empty[0], files=tuple(files.items()))
        self.rows = sum(len(owners) for owners, _ in self.users())

    def users(self) -> Iterator[tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]]:
        """The numbers of some users, and the places of their rows."""
        for _, order, owners, _, where in self._pieces():
            yield owners, where[order]

    def sample(self, step: int) -> TableColumns:
        """The rows of about one user in ``step``, in their order; no rows of labels."""
        found, persons = list[TableColumns](), list[Persons]()
        for rows, order, owners, own, _ in self._pieces():
            chosen = hashed(own[order]) % step == 0
            found.append(self._columns(rows, order[chosen], owners[chosen]))
            persons.append(own[order][chosen])
        whole = joined(f"{self.source}: a sample", found)
        order, owners = taking_part(np.concatenate(persons), whole.places, self._bound)
        found_rows = replace(whole, others={}).sample(order)
        return replace(found_rows, owners=owners, others=self._empty.others)

    def blocks(self, size: int) -> Iterator[TableColumns]:
        """All rows, about ``size`` at a time, and all of a user."""
        for rows, order, owners, _, _ in self._pieces():
            start = 0
            while start < len(order):
                last = owners[min(start + size, len(order)) - 1]
                end = int(np.searchsorted(owners, last, side="right"))
                yield self._columns(rows, order[start:end], owners[start:end] - owners[start])
                start = end

    def _pieces(self) -> Iterator[tuple[pa.Table, Any, Any, Persons, Any]]:
        for kept in self._kept:
            with pa.ipc.open_stream(kept) as stream:
                rows = stream.read_all()
            if not rows.num_rows:
                continue
            words = np.concatenate([_words(chunk)[:, -2:] for chunk in rows.column(0).chunks])
            where, persons = words[:, 0].copy(), words[:, 1].copy().view(np.uint64)
            yield rows, *taking_part(persons, where, self._bound), persons, where

    def _packed(self, batch: TableColumns, persons: Persons) -> pa.RecordBatch:
        """All numbers of a row are one column: few rows take little more room than these."""
        labels: Any = None
        if self._label in batch.others:
            own = batch.others[self._label]
            labels = numbers(own) if self._classes is None else places(own, self._classes)
        if labels is None:
            labels = np.full(batch.rows, np.nan)
        floats = np.column_stack([batch.numbers, *batch.factors.values(), labels.astype(float)])
        more = (batch.places[:, None], persons.view(np.int64)[:, None])
        words = np.concatenate([np.ascontiguousarray(floats).view(np.int64), *more], axis=1)
        first = pa.FixedSizeListArray.from_arrays(pa.array(words.ravel()), words.shape[1])
        columns = [first, *batch.texts]
        return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])

    def _columns(
        self, rows: pa.Table, order: Int64[np.ndarray, " m"], owners: Int64[np.ndarray, " m"]
    ) -> TableColumns:
        first, *texts = (each.combine_chunks() for each in rows.take(pa.array(order)).columns)
        words, empty = _words(first), self._empty
        *floats, labels = np.ascontiguousarray(words[:, :-2]).view(np.float64).T
        width = empty.numbers.shape[1]
        others = dict[str, Any]()
        if self._label in empty.others:
            others[self._label] = labels
        if others and self._classes is not None:
            others[self._label] = np.array([*self._classes, None], object)[labels.astype(np.int64)]
        return replace(
            empty,
            source=f"{self.source}: the rows of some users",
            rows=len(order),
            numbers=np.reshape(floats[:width], (width, len(order))).T,
            texts=tuple(texts),
            others=others,
            factors=dict(zip(empty.factors, floats[width:], strict=True)),
            places=words[:, -2],
            owners=owners,
        )


def _words(rows: pa.FixedSizeListArray) -> Int64[np.ndarray, "n w"]:
    found: Int64[np.ndarray, "n w"] = rows.flatten().to_numpy().reshape(-1, rows.type.list_size)
    return found
