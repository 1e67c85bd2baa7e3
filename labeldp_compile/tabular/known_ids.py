"""Which rows of a table have ids that parts of a folder hold already, exactly.

Ids are compared by 128 bits that the key determines, which nobody without the key can make collide.
They are kept for the rows of the table, never for those of the folder, and are not written. The
same id in another width of integers is the same id; 5 and "5" are not.
"""

from collections.abc import Iterable

import numpy as np
from labeldp_runtime import Key
from labeldp_runtime.ids import Ids
from labeldp_runtime.keyed import KeyedWords
from numpy.typing import NDArray

_CONTEXT = "labeldp: which ids are known"  # the words of no label: the digest is of no artifact
_DIGEST = "0" * 64
_Words = NDArray[np.uint64]


class KnownIds:
    """The rows of a table, in order, and which of their ids parts hold."""

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
