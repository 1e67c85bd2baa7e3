"""Which rows of a table are drawn: by ids that must be new, and by persons within their bound.

Only ids, the part's name and public columns decide. When rows are added to a folder of parts, a row
whose id is in a part keeps what is stored there, also if its label is another one now.

Ids that are in a table twice are found exactly, in memory that does not grow with the table. Only a
digest of 64 bits is kept for each row: in memory at first, and of a larger table in a file without
a name. At the end they are sorted, the file in place, and neighbours compared. If no digest occurs
twice, no id does. Otherwise the ids are read again, since two ids can have one digest by chance
(once in 2^64 pairs).

The file is in the folder of the output, may be read by its owner only, and has no name, so that it
is gone when the process ends. It holds no label and, once sorted, no row's place. Of integers it
holds the ids, of text and bytes a digest that anyone can compute; the output has these ids, too. It
takes 8 bytes per row.
"""

from __future__ import annotations

import hmac
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np
import pyarrow as pa
from labeldp_runtime import Key
from labeldp_runtime.ids import SUSPECTS, Ids, IntegerIds, increasing, refuse_pairs
from labeldp_runtime.keyed import KeyedWords
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.tabular.provenance import PartsFolder
from labeldp_compile.tabular.reader import TableReader, read_schema, require_column

if TYPE_CHECKING:
    from labeldp_compile.tabular.persons import PersonBound

Beyond = Literal["refuse", "null", "drop"]  # what is done with rows beyond a person's bound
HELD_ROWS = 5 << 22  # 160 MiB: what many tables need
_COMPARED_ROWS = 1 << 20  # at once
_NAME_TAG = b"labeldp-ids-1"
_CONTEXT = "labeldp: which ids are known"  # the words of no label: the digest is of no artifact
_DIGEST = "0" * 64
_Words = NDArray[np.uint64]


class UniqueIds:
    """Collects the ids of a table part by part; ``check`` refuses a table with an id twice.

    Attributes:
        name: with a secret, 16 hexadecimal digits for the set of ids, after ``check``. Without the
            secret, nobody can tell whether a guess of the ids is right.
    """

    def __init__(self, folder: Path | None = None, secret: bytes | None = None) -> None:
        """No ids so far; without a ``folder`` for the file all digests stay in memory."""
        self._folder, self._secret, self.name = folder, secret, ""
        self._file: BinaryIO | None = None
        self._held = np.empty(HELD_ROWS, dtype=np.uint64)  # of which pages are taken as they fill
        self._count = 0

    def add(self, ids: Ids) -> None:
        """Take the next ids; those of all parts must be of one type. Raises OSError."""
        digests = ids.digests()
        after = self._count + len(digests)
        if after > len(self._held):
            if self._folder is not None:
                self._write(digests)
                return
            self._held.resize(max(after, len(self._held) + HELD_ROWS), refcheck=False)
        self._held[self._count : after] = digests
        self._count = after

    def check(self, read_again: Callable[[], Iterable[Ids]]) -> None:
        """Raise DuplicateIdError if an id was added twice, or OSError; forgets the ids.

        ``read_again`` yields the same ids in the same order; it is called only if two digests are
        equal.
        """
        digests = self._held[: self._count]
        if self._file is not None:
            self._write(digests)
            digests = np.memmap(self._file, np.uint64, "r+")
        self._count = 0
        if increasing(digests):
            self._set_name(digests)
            return
        digests.sort()
        self._set_name(digests)
        suspects = np.empty(0, dtype=np.uint64)
        for start in range(0, len(digests), _COMPARED_ROWS):
            part = digests[start : start + _COMPARED_ROWS + 1]
            suspects = np.union1d(suspects, part[1:][part[1:] == part[:-1]])
            while len(suspects) >= SUSPECTS:
                refuse_pairs(suspects[:SUSPECTS], read_again())
                suspects = suspects[SUSPECTS:]
        if len(suspects):
            refuse_pairs(suspects, read_again())

    def _set_name(self, increasing: _Words) -> None:
        if self._secret is None:
            return
        found = hmac.new(self._secret, _NAME_TAG, "sha256")
        for start in range(0, len(increasing), _COMPARED_ROWS):
            found.update(increasing[start : start + _COMPARED_ROWS].astype("<u8").tobytes())
        self.name = found.digest()[:8].hex()

    def close(self) -> None:
        """Close the file, which removes it."""
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which was reported before
                self._file.close()

    def _write(self, digests: _Words) -> None:
        """Put the digests that are held, and these, into the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - see close
        held, self._count = self._held[: self._count], 0
        for part in (held, digests):
            self._file.write(np.ascontiguousarray(part).data)
        self._file.flush()


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


def _noting(parts: Iterator[Ids], kinds: set[str]) -> Iterator[Ids]:
    for ids in parts:
        if len(ids):
            kinds.add(_kind(ids))
            yield ids


def _kind(ids: Ids) -> str:
    return "integers" if isinstance(ids, IntegerIds) else ids.kind
