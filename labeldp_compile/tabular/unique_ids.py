"""Find ids that are in a table twice, exactly, in memory that does not grow with the table.

Only a digest of 64 bits is kept for each row: in memory at first, and of a larger table in a file
without a name. At the end they are sorted, the file in place, and neighbours compared. If no digest
occurs twice, no id does. Otherwise the ids are read again, since two ids can have one digest by
chance (once in 2^64 pairs).

The file is in the folder of the output, may be read by its owner only, and has no name, so that it
is gone when the process ends. It holds no label and, once sorted, no row's place. Of integers it
holds the ids, of text and bytes a digest that anyone can compute; the output has these ids, too. It
takes 8 bytes per row.
"""

import hmac
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from labeldp_runtime.duplicates import SUSPECTS, increasing, refuse_pairs
from labeldp_runtime.ids import Ids
from numpy.typing import NDArray

HELD_ROWS = 5 << 22  # 160 MiB: what many tables need
_COMPARED_ROWS = 1 << 20  # at once
_NAME_TAG = b"labeldp-ids-1"
_Digests = NDArray[np.uint64]


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

    def _set_name(self, increasing: _Digests) -> None:
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

    def _write(self, digests: _Digests) -> None:
        """Put the digests that are held, and these, into the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - see close
        held, self._count = self._held[: self._count], 0
        for part in (held, digests):
            self._file.write(np.ascontiguousarray(part).data)
        self._file.flush()
