"""Add the rows of a table that are new to a folder of parts, as one part.

Only ids, the part's name and public columns decide which rows are drawn. A row whose id is in a
part keeps what is stored there, also if its label is another one now.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from labeldp_runtime import Key
from labeldp_runtime.ids import Ids, IntegerIds
from labeldp_runtime.keyed import KeyedWords
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.own_file import file_digest
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.header import read_schema, require_column
from labeldp_compile.tabular.parts_folder import ListedPart, PartsFolder
from labeldp_compile.tabular.person_bound import PersonBound
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import TextForm

_CONTEXT = "labeldp: which ids are known"  # the words of no label: the digest is of no artifact
_DIGEST = "0" * 64
_PART_TAG = b"labeldp-part-1"
_Words = NDArray[np.uint64]


class KnownIds:
    """The rows of a table, in order, and which of their ids parts hold, exactly.

    Ids are compared by 128 bits that the key determines, which nobody without the key can make
    collide. They are kept for the rows of the table, never for those of the folder, and are not
    written. The same id in another width of integers is the same id; 5 and "5" are not.
    """

    def __init__(self, key: Key, ids: Iterable[Ids]) -> None:
        """``ids`` are those of the table, batch by batch."""
        self._words_of = KeyedWords(key, _CONTEXT, _DIGEST, 2)
        parts = [self._words(part) for part in ids]
        words = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.uint64)
        order = np.lexsort((words[:, 1], words[:, 0]))
        words = words[order]
        is_first = np.append(True, (words[1:] != words[:-1]).any(axis=1))[: len(words)]
        self._words_once = words[is_first]
        self._place = np.empty(len(words), dtype=np.int64)  # of each row's id among these
        self._place[order] = np.cumsum(is_first) - 1
        self._known = np.zeros(len(self._words_once), dtype=bool)
        self._next = 0

    def __len__(self) -> int:
        """Rows of the table."""
        return len(self._place)

    def find(self, ids: Ids) -> None:
        """Take note of ids that a part holds."""
        words = self._words(ids)
        first, second = self._words_once.T
        # Two ids with the same first word are next to each other; their second words differ.
        begin = np.searchsorted(first, words[:, 0], side="left")
        end = np.searchsorted(first, words[:, 0], side="right")
        for step in range(int((end - begin).max(initial=0))):
            at = begin + step
            inside = at < end
            at, own = at[inside], words[inside]
            self._known[at[second[at] == own[:, 1]]] = True

    def rewind(self) -> None:
        """Begin again with the table's first row."""
        self._next = 0

    def next_rows(self, rows: int) -> NDArray[np.bool_]:
        """Which of the table's next rows [rows] have ids that no part holds."""
        start, self._next = self._next, self._next + rows
        return ~self._known[self._place[start : self._next]]

    def _words(self, ids: Ids) -> _Words:
        return self._words_of(ids, np.zeros(len(ids), dtype=np.uint64), 0)


@dataclass
class Selection:
    """Which rows are drawn: a ``Keep`` of ``Rewriting``.

    Attributes:
        ids: the ids of the table that parts hold, if it is added to a folder.
        bound: on the rows of one person, whose rows beyond it may be left out.
        known: rows with such ids, so far.
    """

    ids: KnownIds | None = None
    bound: PersonBound | None = None
    known: int = field(default=0, init=False)

    @property
    def leaves_out(self) -> bool:
        """Whether rows of a table may be left out."""
        drops = self.bound is not None and self.bound.beyond == "drop"
        return drops or self.ids is not None

    def __call__(self, file: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] of a batch, in the order of the table. Raises DataError."""
        chosen = self.public(file, batch)
        if self.bound is not None and self.bound.beyond == "drop":
            rows = chosen_rows(batch, chosen)
            chosen[chosen] = self.bound.within(file, rows)
        return chosen

    def measure(self, table: TableReader) -> None:
        """Hold a table against the bound, if there is one, before anything is drawn."""
        if self.bound is not None:
            names = [table.id_column] if self.ids and table.id_column else []
            self.bound.measure(table, self.public, self.rewind, names)
            self.rewind()

    def rewind(self) -> None:
        """Begin again with the table's first row."""
        self.known = 0
        if self.ids is not None:
            self.ids.rewind()

    def public(self, file: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] are new, of any person."""
        chosen = np.ones(len(batch), dtype=bool)
        if self.ids is not None:
            chosen = self.ids.next_rows(len(batch))
            if len(chosen) != len(batch):
                raise refused(file.path, "was changed while it was read: run this again")
            self.known += int(np.count_nonzero(~chosen))
        return chosen

    def count(self, table: TableReader) -> int:
        """How many rows of a table would be drawn."""
        return sum(int(self(file, batch).sum()) for file in table.files for batch in file.batches())


def known_ids(
    folder: PartsFolder, table: TableReader, key: Key, columns: list[str], form: TextForm
) -> KnownIds:
    """Which ids of the table the parts hold, for private ``columns``; reads ids alone.

    ``form`` is that of the parts. Raises DataError if a part has no such column, or ids of another
    type.
    """
    kinds: set[str] = set()
    found = KnownIds(key, _noting(table.ids(), kinds))
    for path in folder.parts():
        schema, rows, csv = read_schema(path, form)
        for name in (table.id_column, *columns):
            assert name is not None
            require_column(path, name, list(schema.names), csv)
        part = replace(
            table,
            path=path,
            label_columns=(),
            unread_labels=tuple(columns),
            schema=schema,
            rows=rows,
            csv=csv,
            parts=(),
        )
        for ids in _noting(part.ids(), kinds):
            if len(kinds) > 1:
                reason = f"its ids are {_kind(ids)}, but those of {table.path.name} are not"
                raise refused(path, f"{reason}: all parts need the same type of ids")
            found.find(ids)
    return found


def seal(
    folder: PartsFolder, name: str, part: ListedPart, key: Key, book: Callable[[int, str], None]
) -> Callable[[Path, int], None]:
    """What happens to a complete part before it gets its name: it is listed, then booked."""

    def sealed(path: Path, rows: int) -> None:
        sha256 = file_digest(path)
        digest = hmac.digest(key.secret, _PART_TAG + sha256.encode(), "sha256")[:8].hex()
        folder.put(name, replace(part, sha256=sha256, digest=digest, rows=rows))
        try:
            book(rows, digest)
        except Exception:
            folder.remove(name)
            raise

    return sealed


def _noting(parts: Iterator[Ids], kinds: set[str]) -> Iterator[Ids]:
    for ids in parts:
        if len(ids):
            kinds.add(_kind(ids))
            yield ids


def _kind(ids: Ids) -> str:
    return "integers" if isinstance(ids, IntegerIds) else ids.kind
