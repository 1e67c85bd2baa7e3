"""Counts the rows of each person, and finds the rows beyond the most that one may have.

Only the public column of persons is read here, and a public column that orders rows: whether a row
is beyond the bound depends on no label, and a row counts whether or not its label is null.

Persons are told apart by digests of 64 bits, which are held in memory only and written nowhere.
Two persons with one digest (once in 2^64 pairs) count as one, so that a row too many is beyond the
bound, never one too few. Who a person is says ``person_names``.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
from labeldp_runtime import IdError
from labeldp_runtime.columns import read_ids
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.tabular.person_names import person_names
from labeldp_compile.tabular.reader import TableReader, read_columns
from labeldp_compile.text_form import TextForm

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
