"""Find ids that stand in a table twice, exactly, in memory that does not grow with the table.

Only a digest of 64 bits is kept for each row. Digests are gathered into runs, which are sorted; all
but the last go to a file without a name. In the end ranges of digests are taken from all runs, and
compared. If no digest occurs twice, no id does. If one does, the ids are read again to see whether
it is an accident (which it is once in 2^64 pairs) or not.

The file stands in the folder of the output, may be read by its owner only, and has no name, so
that it goes with the process, however that ends. It holds no label and no row's place: of integers
the ids themselves, of text and bytes a digest that anyone can compute, both of which the output
holds, too. It takes 8 bytes a row.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from labeldp_runtime.duplicates import SUSPECTS, increasing, refuse_pairs
from labeldp_runtime.ids import Ids
from numpy.typing import NDArray

_RUN_ROWS = 5 << 22  # 160 MiB: many tables are one run
_BLOCK_ROWS = 1 << 10  # from one entry of a run's index to the next
_RANGE_BLOCKS = 1 << 10  # that are compared at once
_THREADS = 2
_Digests = NDArray[np.uint64]


@dataclass(frozen=True)
class _Run:
    """Sorted digests [rows], none more than twice, in memory or in a file.

    ``index`` has every ``_BLOCK_ROWS``-th of them, ``place`` is the byte where they begin.
    """

    rows: int
    index: _Digests
    distinct: bool
    held: _Digests | None
    file: BinaryIO | None
    place: int

    def between(self, low: int, high: int) -> tuple[int, int]:
        """The first row and the last but one of blocks with all digests from low to high."""
        first = max(int(np.searchsorted(self.index, np.uint64(low), side="left")) - 1, 0)
        last = int(np.searchsorted(self.index, np.uint64(high), side="right"))
        return first * _BLOCK_ROWS, min(last * _BLOCK_ROWS, self.rows)

    def copy(self, first: int, target: _Digests) -> None:
        """Fill ``target`` with the digests from row ``first`` on. Raises OSError."""
        if self.held is not None:
            target[:] = self.held[first : first + len(target)]
        else:
            assert self.file is not None
            place = self.place + 8 * first
            if os.preadv(self.file.fileno(), [target.data], place) != target.nbytes:
                raise OSError(errno.EIO, os.strerror(errno.EIO))


class UniqueIds:
    """Collects the ids of a table part by part; ``check`` refuses it if one stands there twice."""

    def __init__(self, folder: Path | None = None) -> None:
        """No ids so far; without a ``folder`` for the file all digests stay in memory."""
        self._folder = folder
        self._file: BinaryIO | None = None
        self._runs: list[_Run] = []
        self._last = np.empty(_RUN_ROWS, dtype=np.uint64)  # of which pages are taken as they fill
        self._count = 0

    def add(self, ids: Ids) -> None:
        """Take the next ids; those of all parts must be of one type. Raises OSError."""
        digests = ids.digests()
        while len(digests):
            if self._count == len(self._last):
                self._end_run(keep=self._folder is None)
            part = digests[: len(self._last) - self._count]
            self._last[self._count : self._count + len(part)] = part
            self._count += len(part)
            digests = digests[len(part) :]

    def check(self, read_again: Callable[[], Iterable[Ids]]) -> None:
        """Raise DuplicateIdError if an id was added twice, or OSError; forgets the ids.

        ``read_again`` yields the same ids in the same order; it is called only if two digests are
        equal.
        """
        suspects = np.empty(0, dtype=np.uint64)
        try:
            for found in self._repeated():
                suspects = np.unique(np.concatenate([suspects, found]))
                while len(suspects) >= SUSPECTS:
                    refuse_pairs(suspects[:SUSPECTS], read_again())
                    suspects = suspects[SUSPECTS:]
            if len(suspects):
                refuse_pairs(suspects, read_again())
        finally:
            self._runs, self._count = [], 0

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which was said before
                self._file.close()

    def _end_run(self, *, keep: bool) -> None:
        """Sort the digests, and write them to the file unless they are kept."""
        digests = self._sorted()
        distinct = increasing(digests)
        if not distinct:
            third = digests[2:] == digests[:-2]
            digests = np.delete(digests, np.flatnonzero(third) + 2)
        place = 0
        if not keep:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - see close
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(digests.data)
            self._file.flush()
        index = digests[::_BLOCK_ROWS].copy()
        held = digests if keep else None
        self._runs.append(_Run(len(digests), index, distinct, held, self._file, place))
        self._count = 0
        if keep:
            self._last = np.empty(_RUN_ROWS, dtype=np.uint64)

    def _repeated(self) -> Iterator[_Digests]:
        """Digests that were added twice, in parts of increasing ones, each once or twice."""
        if not self._runs:
            yield _neighbours(self._sorted())
            return
        if self._count:
            self._end_run(keep=True)
        entries = np.sort(np.concatenate([run.index for run in self._runs]))
        edges = [*entries[::_RANGE_BLOCKS].tolist(), 2**64 - 1]
        with ThreadPoolExecutor(_THREADS) as pool:
            coming: deque[Future[_Digests]] = deque()
            for low, high in pairwise(edges):
                coming.append(pool.submit(self._repeated_between, low, high))
                if len(coming) > _THREADS:
                    yield coming.popleft().result()
            for future in coming:
                yield future.result()

    def _repeated_between(self, low: int, high: int) -> _Digests:
        parts = [(run, *run.between(low, high)) for run in self._runs]
        parts = [(run, a, b) for run, a, b in parts if a < b]
        if len(parts) == 1 and parts[0][0].distinct:
            return np.empty(0, dtype=np.uint64)
        digests = np.empty(sum(b - a for _, a, b in parts), dtype=np.uint64)
        filled = 0
        for run, a, b in parts:
            run.copy(a, digests[filled : filled + b - a])
            filled += b - a
        digests.sort(kind="stable")  # which merges what is sorted in parts
        return _neighbours(digests)

    def _sorted(self) -> _Digests:
        """The digests of the last run, in order; two threads sort a half each."""
        digests = self._last[: self._count]
        if not increasing(digests):
            middle = len(digests) // 2
            digests.partition(middle)
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(np.ndarray.sort, (digests[:middle], digests[middle:])))
        return digests


def _neighbours(digests: _Digests) -> _Digests:
    """Sorted digests that stand there twice, each once."""
    return np.unique(digests[1:][digests[1:] == digests[:-1]])
