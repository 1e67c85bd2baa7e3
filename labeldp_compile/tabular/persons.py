"""Count the rows of each person, and enforce the most that one may have.

Only the public column of persons is read here, and a public column that orders rows: whether a row
is beyond the bound depends on no label, and a row counts whether or not its label is null.

Persons are told apart by digests of 64 bits, which are held in memory only and written nowhere.
Two persons with one digest (once in 2^64 pairs) count as one, so that a row too many is beyond the
bound, never one too few. Who a person is says ``person_names``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from labeldp_runtime import IdError
from labeldp_runtime.columns import read_ids
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.formats import TextForm, files_of, is_stream
from labeldp_compile.tabular.person_names import person_names
from labeldp_compile.tabular.reader import TableReader, read_columns

_HELD_ROWS = 1 << 20  # that ``count`` gathers before it sorts them
Persons = NDArray[np.uint64]


class PersonCounts:
    """Rows of each person so far; 16 bytes a person."""

    def __init__(self) -> None:
        """No rows."""
        self._known = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)
        self._held: list[Persons] = []

    @property
    def persons(self) -> int:
        """How many persons have rows."""
        return len(self._merged())

    @property
    def rows(self) -> int:
        """Rows of all persons."""
        return int(self._merged().sum())

    @property
    def largest(self) -> int:
        """The most rows of one person; 0 without rows."""
        return int(self._merged().max(initial=0))

    def beyond(self, most: int) -> tuple[int, int]:
        """How many persons have more than ``most`` rows, and how many rows are too many."""
        counts = self._merged()
        over = counts[counts > most] - most
        return len(over), int(over.sum())

    def since(self, earlier: PersonCounts, most: int) -> int:
        """How many persons have more rows than in ``earlier``, and had fewer than ``most``."""
        counts, before = self._merged(), earlier.of(self._known)
        return int(np.count_nonzero((counts > before) & (before < most)))

    def count(self, persons: Persons) -> None:
        """Count rows by the digests [n] of their persons; ``add`` also numbers them."""
        self._held.append(persons)
        if sum(map(len, self._held)) >= max(_HELD_ROWS, len(self._known)):
            self._merged()

    @classmethod
    def of_table(cls, table: TableReader, column: str) -> PersonCounts:
        """The rows of each person of an open table. Raises DataError."""
        found = cls()
        for file in table.files:
            for batch in file.columns([column]):
                found.count(persons_of(file.path, column, batch.column(column)))
        return found

    def seed(self, path: Path, column: str, form: TextForm, labels: Collection[str] = ()) -> None:
        """Count the rows of an earlier table, file or folder, by its column of persons; columns of
        ``labels`` are not looked at.

        Raises DataError.
        """
        for file in files_of(path):
            for batch in read_columns(file, [column], form, labels):
                self.count(persons_of(file, column, batch.column(column)))

    def add(self, persons: Persons) -> NDArray[np.int64]:
        """Count rows by the digests [n] of their persons.

        Returns [n] the number of each row among the rows of its person: 1, 2, 3, …, those of
        earlier calls included.
        """
        found, of_row, counts = np.unique(persons, return_inverse=True, return_counts=True)
        before = self.of(found)
        # The rows of one person one after the other, in their order: the k-th is number k.
        order = np.argsort(of_row, kind="stable")
        first = np.cumsum(counts) - counts
        numbers = np.empty(len(persons), dtype=np.int64)
        numbers[order] = np.arange(len(persons)) - np.repeat(first, counts) + 1
        self._put(found, before + counts)
        return numbers + before[of_row]

    def of(self, persons: Persons) -> NDArray[np.int64]:
        """[n] the rows so far of the persons with these digests [n]."""
        self._merged()
        if not len(self._known):
            return np.zeros(len(persons), dtype=np.int64)
        at = np.minimum(np.searchsorted(self._known, persons), len(self._known) - 1)
        return np.where(self._known[at] == persons, self._counts[at], 0)

    def reset_to(self, earlier: PersonCounts) -> PersonCounts:
        """New counts of the same persons, which start with ``earlier`` rows: ``add`` is then quick,
        because it meets no new person."""
        self._merged()
        found = PersonCounts()
        found._known, found._counts = self._known, earlier.of(self._known)
        return found

    def _merged(self) -> NDArray[np.int64]:
        """The counts, those that were held included."""
        held, self._held = self._held, []
        if held:
            found, counts = np.unique(np.concatenate(held), return_counts=True)
            self._put(found, self.of(found) + counts)
        return self._counts

    def _put(self, found: Persons, counts: NDArray[np.int64]) -> None:
        """The counts of some persons, each once and in order, from now on."""
        at = np.searchsorted(self._known, found)
        old = at < len(self._known)
        old[old] = self._known[at[old]] == found[old]
        self._counts[at[old]] = counts[old]
        if not old.all():
            self._known = np.insert(self._known, at[~old], found[~old])
            self._counts = np.insert(self._counts, at[~old], counts[~old])


def persons_of(path: Path, column: str, values: pa.Array) -> Persons:
    """[n] digests of the persons of a batch.

    Raises DataError for a row without a person, and for a type that names nobody.
    """
    names = person_names(values, str(path), column)
    try:
        return read_ids(names).digests()
    except IdError as error:  # a name that is too long
        raise refused(path, f"{column!r}: {error}") from None


Beyond = Literal["refuse", "null", "drop"]
Keep = Callable[[TableReader, pa.RecordBatch], NDArray[np.bool_]]


@dataclass
class PersonBound:
    """At most ``most`` rows of each person in a table, those in ``earlier`` tables included.

    ``measure`` reads the public columns before anything is drawn. Then ``within`` says of every
    batch, once and in order, which rows are within the bound. Without ``order`` the first rows of a
    person in the table are, with it those that are least in this public column (equal ones in the
    order of the table).

    Attributes:
        column: of persons.
        beyond: what happens to rows beyond it: ``measure`` refuses the table, or the caller gives
            them no label, or leaves them out.
        extra: rows of the table that are beyond the bound, after ``measure``.
    """

    column: str
    most: int
    _: KW_ONLY
    beyond: Beyond = "refuse"
    order: str | None = None
    earlier: PersonCounts = field(default_factory=PersonCounts)
    extra: int = field(default=0, init=False)
    _counts: PersonCounts | None = field(default=None, init=False)
    _running: PersonCounts | None = field(default=None, init=False)
    _late: NDArray[np.int64] | None = field(default=None, init=False)
    _place: int = field(default=0, init=False)

    def measure(
        self,
        table: TableReader,
        keep: Keep = lambda file, batch: np.ones(len(batch), dtype=bool),
        rewind: Callable[[], None] = lambda: None,
        names: Sequence[str] = (),
    ) -> None:
        """Count the rows of all persons, and find the rows beyond the bound if they have an order.

        Only rows that ``keep`` keeps count; it needs the columns ``names``, and ``rewind`` before
        each pass over the table.

        Raises DataError if a row names no person, if a column is missing, and with ``refuse`` if a
        row is beyond the bound. Raises InputError for standard input, which is read only once,
        unless rows beyond it stay without a label in the order of the table.
        """
        for name in (self.column, *([self.order] if self.order else [])):
            table.require_column(name)
        if is_stream(table.path):
            if self.beyond == "null" and self.order is None:
                return
            raise InputError(
                f"{table.path}: the rows of each person are counted before anything is drawn, "
                "which reads the table twice: give a file, or --beyond null"
            )

        def kept() -> Iterator[tuple[pa.RecordBatch, Persons]]:
            rewind()
            columns = list(dict.fromkeys(filter(None, (self.column, self.order, *names))))
            for file in table.files:
                for batch in file.columns(columns):
                    rows = chosen_rows(batch, keep(file, batch))
                    yield rows, self._of(file, rows)

        counts = self._counts = self.earlier.reset_to(self.earlier)
        for _, persons in kept():
            counts.count(persons)
        too_many = counts.beyond(self.most)[0]
        self.extra = counts.beyond(self.most)[1] - self.earlier.beyond(self.most)[1]
        if self.extra and self.beyond == "refuse":
            raise refused(table.path, self._in_words(counts, too_many))
        self._running = counts.reset_to(self.earlier)
        if self.order is not None and self.extra:
            self._late = self._latest(table, counts, kept())

    @property
    def persons(self) -> int:
        """How many persons have a label in the output; known when the table was read."""
        counts = self._counts or self._running
        return 0 if counts is None else counts.since(self.earlier, self.most)

    def within(self, table: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] of the next batch of a table or part are within the bound. DataError."""
        if self._late is not None:
            places = np.arange(self._place, self._place + len(batch))
            self._place += len(batch)
            return ~np.isin(places, self._late, assume_unique=True)
        if self._running is None:
            self._running = self.earlier.reset_to(self.earlier)
        return self._running.add(self._of(table, batch)) <= self.most

    def unlabelled(self, table: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] of the next batch get no label, as a ``Keep``. Raises DataError."""
        beyond = ~self.within(table, batch)
        if self._counts is None:  # standard input, of which nothing was known before
            self.extra += int(beyond.sum())
        if self.beyond == "refuse" and beyond.any():
            raise refused(table.path, "was changed while it was read: run this again")
        return beyond

    def _of(self, file: TableReader, batch: pa.RecordBatch) -> Persons:
        return persons_of(file.path, self.column, batch.column(self.column))

    def _latest(
        self,
        table: TableReader,
        counts: PersonCounts,
        rows_of: Iterator[tuple[pa.RecordBatch, Persons]],
    ) -> NDArray[np.int64]:
        """The places of the rows beyond the bound: the last of each person in the order."""
        assert self.order is not None
        place, found = 0, []
        for batch, persons in rows_of:
            beyond = counts.of(persons) > self.most
            rows, order = np.flatnonzero(beyond), chosen_rows(batch, beyond).column(self.order)
            places = pa.array(rows + place)
            found.append(pa.table([pa.array(persons[rows]), order, places], ["person", "by", "at"]))
            place += len(batch)
        ordered = self._sorted(table, found)
        numbers = counts.reset_to(self.earlier).add(ordered.column("person").to_numpy())
        late: NDArray[np.int64] = ordered.column("at").to_numpy()[numbers > self.most]
        return np.sort(late)

    def _sorted(self, table: TableReader, found: list[pa.Table]) -> pa.Table:
        """Rows of many persons in their order; text that is all numbers is ordered as numbers."""
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        rows = pa.concat_tables(found, promote_options="permissive")
        by = rows.column("by")
        if pa.types.is_dictionary(by.type):
            by = by.cast(by.type.value_type)
        if by.null_count or (pa.types.is_string(by.type) and pc.any(pc.equal(by, "")).as_py()):
            raise refused(
                table.path,
                f"{self.order!r} is empty in a row of a person beyond the bound: rows without an "
                "order cannot be ordered",
            )
        if pa.types.is_string(by.type):
            with suppress(pa.ArrowInvalid):  # dates of ISO 8601, for example
                by = by.cast(pa.float64())
        rows = rows.set_column(1, "by", by)
        try:
            keys = [("person", "ascending"), ("by", "ascending"), ("at", "ascending")]
            return rows.take(pc.sort_indices(rows, sort_keys=keys))
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise refused(
                table.path, f"{self.order!r} has the type {by.type}, which has no order"
            ) from None

    def _in_words(self, counts: PersonCounts, too_many: int) -> str:
        whose = "" if not self.earlier.rows else ", with those of earlier tables"
        return (
            f"{too_many:,} of {counts.persons:,} persons in {self.column!r} have more than "
            f"{self.most:,} rows{whose} (the most: {counts.largest:,}): {self.extra:,} rows too "
            "many. Nothing was drawn. Aggregate to fewer rows a person first, compile for more "
            "labels a person, or give these rows no label with --beyond null, or remove them with "
            "--beyond drop --order-column COLUMN"
        )
