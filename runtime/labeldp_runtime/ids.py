"""Ids as the keyed generator reads them: integers of 64 bits, text in UTF-8, or bytes.

What an id is depends on its own value alone, never on its container or neighbours: an integer is
the same in int8 and uint64, text the same in a list, an Arrow dictionary or a Polars Series. The
integer 5 and the text "5" are different ids. UUID objects are their 16 bytes; UUIDs as strings are
text.

Ids that are in a column twice are found exactly. Only a digest of 64 bits of each id is compared.
If no digest occurs twice, no id does. Otherwise the ids are compared, since two ids can have one
digest by chance (once in 2^64 pairs).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.errors import DuplicateIdError, IdError

MAX_ID_BYTES = 1 << 16
_PADDING = 32  # the 8-byte pieces below may run past the end of the last id
_CACHED_ROWS = 1 << 15  # rows whose numbers stay in a core's cache
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF, _THIRD = np.uint64(32), np.uint64(29)


def null_id(column: str | None = None) -> IdError:
    """The error for ids with nulls; ``column`` names them if a query found them."""
    return IdError(
        f"{_named(column)}an id is null, so its label has no random bits: "
        "give every row an id, or remove the rows without one"
    )


def repeated_id(where: str, column: str | None = None) -> DuplicateIdError:
    """The error for an id of several rows; ``where`` says which."""
    return DuplicateIdError(
        f"{_named(column)}{where}, which would show whether their labels are equal: "
        "an id must name one label; add what distinguishes them (a date, a line number) "
        "to the id, or remove the repeated rows"
    )


def _named(column: str | None) -> str:
    return "" if column is None else f"{column!r}: "


@dataclass(frozen=True)
class IntegerIds:
    """Ids [n] as int64 or uint64."""

    values: NDArray[np.int64] | NDArray[np.uint64]

    def __len__(self) -> int:
        """The number of ids."""
        return len(self.values)

    def __getitem__(self, rows: slice) -> IntegerIds:
        """Some of the ids."""
        return IntegerIds(self.values[rows])

    def value(self, row: int) -> int:
        """One id."""
        return int(self.values[row])

    def digests(self) -> NDArray[np.uint64]:
        """64 bits an id: different for different ids of one type."""
        return self.values.view(np.uint64)


@dataclass(frozen=True)
class ByteIds:
    """Ids [n] as strings of bytes inside one buffer.

    Attributes:
        kind: text (UTF-8) or binary.
        data: the buffer with the ids, one after the other.
        starts: int64 [n], where each id begins.
        lengths: int64 [n], its number of bytes, at most ``MAX_ID_BYTES``.
    """

    kind: Literal["text", "binary"]
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(
        cls, kind: Literal["text", "binary"], data: bytes | memoryview, lengths: NDArray[np.int64]
    ) -> ByteIds:
        """Ids that follow one another in ``data``. Raises IdError if one is too long."""
        if len(lengths) and int(lengths.max()) > MAX_ID_BYTES:
            raise IdError(f"an id is longer than {MAX_ID_BYTES:,} bytes: use a shorter id")
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(kind, np.frombuffer(data, dtype=np.uint8), starts[:-1], lengths)

    @classmethod
    def of_width(cls, data: bytes | memoryview, rows: int, width: int) -> ByteIds:
        """Binary ids of ``width`` bytes each, one after the other in ``data``."""
        if width > MAX_ID_BYTES:
            raise IdError(f"ids are longer than {MAX_ID_BYTES:,} bytes: use shorter ids")
        lengths = np.broadcast_to(np.int64(width), rows)
        starts = np.arange(rows, dtype=np.int64) * width
        return cls("binary", np.frombuffer(data, dtype=np.uint8), starts, lengths)

    def __len__(self) -> int:
        """The number of ids."""
        return len(self.lengths)

    def __getitem__(self, rows: slice) -> ByteIds:
        """Some of the ids, in the same buffer."""
        return ByteIds(self.kind, self.data, self.starts[rows], self.lengths[rows])

    def value(self, row: int) -> bytes:
        """One id."""
        start, length = int(self.starts[row]), int(self.lengths[row])
        return self.data[start : start + length].tobytes()

    def digests(self) -> NDArray[np.uint64]:
        """64 bits an id: equal for equal ids, and nearly always different for others."""
        starts = range(0, len(self), _CACHED_ROWS)
        parts = [self[start : start + _CACHED_ROWS]._digests() for start in starts]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)

    def _digests(self) -> NDArray[np.uint64]:
        pieces = Pieces(self)
        state = pieces.lengths.view(np.uint64) * _ODD
        for piece in range(-(-pieces.longest // 8)):
            part = state[: pieces.count_beyond(8 * piece)]
            part ^= pieces.take(piece, len(part))
            part *= _ODD
            part ^= part >> _HALF
        state *= _ODD
        state ^= state >> _THIRD
        return pieces.restore(state)


Ids = IntegerIds | ByteIds


@dataclass(frozen=True)
class CheckedIds:
    """Ids of a call whose caller looks for repeated ones itself, in more rows than the call's."""

    ids: Ids


class Pieces:
    """The ids of a column cut into pieces of 8 bytes, longest ids first.

    In that order the ids that have an i-th piece come first, so each position is one pass over
    arrays.
    """

    def __init__(self, ids: ByteIds) -> None:
        """Sort by length, unless all ids are equally long: then pieces are strided slices."""
        lengths = ids.lengths
        same = len(lengths) == 0 or bool((lengths == lengths[0]).all())
        self._is_even = same
        self._order = None if same else _longest_first(lengths)
        starts = ids.starts - ids.starts[0] if len(ids) else ids.starts
        self._starts = starts if self._order is None else starts[self._order]
        self.lengths = lengths.copy() if self._order is None else lengths[self._order]
        self.longest = int(self.lengths[0]) if len(lengths) else 0
        self._descending = -self.lengths
        self._data = _padded(ids)
        # Every position of the buffer as the number in the 8 bytes from there on.
        size = len(self._data) - 7
        self._numbers = np.ndarray(size, dtype="<u8", buffer=self._data, strides=(1,))

    def count_beyond(self, position: int) -> int:
        """How many ids have more than ``position`` bytes."""
        return int(np.searchsorted(self._descending, -position, side="left"))

    def take(self, piece: int, count: int) -> NDArray[np.uint64]:
        """Bytes 8·piece … 8·piece + 7 of the first ``count`` ids, little-endian; then zeros."""
        if self._is_even and count:
            return self._slice(piece, count)
        numbers = self._numbers[self._starts[:count] + 8 * piece]
        if count and self.lengths[count - 1] >= 8 * (piece + 1):
            return numbers  # the shortest of them fills the piece
        left = np.clip(self.lengths[:count] - 8 * piece, 0, 8)
        return numbers & _MASKS[left]

    def _slice(self, piece: int, count: int) -> NDArray[np.uint64]:
        width = self.longest
        numbers: NDArray[np.uint64] = np.ndarray(
            count, dtype="<u8", buffer=self._data, offset=8 * piece, strides=(width,)
        )
        left = min(max(width - 8 * piece, 0), 8)
        return numbers if left == 8 else numbers & _MASKS[left]

    def sort(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values [n] in the order of the ids, in the order of their lengths."""
        return values if self._order is None else values[self._order]

    def restore(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values [n, …] in the order of lengths, in the order of the ids."""
        if self._order is None:
            return values
        result = np.empty_like(values)
        result[self._order] = values
        return result


def _padded(ids: ByteIds) -> NDArray[np.uint8]:
    """The bytes of these ids alone, followed by zeros."""
    if not len(ids):
        return np.zeros(_PADDING, dtype=np.uint8)
    start, stop = int(ids.starts[0]), int(ids.starts[-1] + ids.lengths[-1])
    data = np.empty(stop - start + _PADDING, dtype=np.uint8)
    data[: stop - start] = ids.data[start:stop]
    data[stop - start :] = 0
    return data


def _longest_first(lengths: NDArray[np.int64]) -> NDArray[np.intp]:
    key = lengths.max() - lengths
    if int(key.max()) < 1 << 16:
        key = key.astype(np.uint16)  # which numpy sorts by counting
    return np.argsort(key, kind="stable")


_TABLE_ROWS = 1 << 21
_PART_ROWS = 1 << 17  # that are compared at once
_ROUNDS = 16
SUSPECTS = 1024  # digests that are looked at in one reading of the ids


def refuse_duplicates(ids: Ids) -> None:
    """Raise DuplicateIdError if an id is in this column twice."""
    digests = ids.digests()
    if len(ids) > 1 and not increasing(digests):
        suspects = repeated(digests)
        for start in range(0, len(suspects), SUSPECTS):
            refuse_pairs(suspects[start : start + SUSPECTS], [ids])


def increasing(digests: NDArray[np.uint64]) -> bool:
    """Whether the ids are increasing numbers, as they often are: then nothing is sorted."""
    before, after = digests[:-1], digests[1:]
    parts = (slice(start, start + _PART_ROWS) for start in range(0, len(before), _PART_ROWS))
    return all((after[part] > before[part]).all() for part in parts)


def repeated(digests: NDArray[np.uint64], table_rows: int = _TABLE_ROWS) -> NDArray[np.uint64]:
    """Digests that are in the array twice, each listed once.

    Up to ``table_rows`` rows a hash table in the cache is several times as fast as sorting. Rows
    of one slot compete for it: each loser is compared with the winner, and the losers try again.
    """
    if len(digests) > table_rows:
        return _repeated_by_sorting(digests)
    bits = max(len(digests).bit_length() + 1, 8)
    winners = np.empty(1 << bits, dtype=np.int32)
    slots = (digests * _ODD >> np.uint64(64 - bits)).astype(np.int32)
    found, rows = [], np.arange(len(digests), dtype=np.int32)
    for _ in range(_ROUNDS):
        winners[slots] = rows
        won_by = winners[slots]
        lost = np.flatnonzero(won_by != rows)
        rows, slots, won_by = rows[lost], slots[lost], won_by[lost]
        same = digests[rows] == digests[won_by]
        found.append(digests[rows[same]])
        if not len(rows):
            return np.unique(np.concatenate(found))
    # Many rows in one slot: the table does not suit these digests.
    return np.unique(np.concatenate([*found, _repeated_by_sorting(digests[rows])]))


def _repeated_by_sorting(digests: NDArray[np.uint64]) -> NDArray[np.uint64]:
    digests = np.sort(digests)
    return np.unique(digests[1:][digests[1:] == digests[:-1]])


def refuse_pairs(suspects: NDArray[np.uint64], parts: Iterable[Ids]) -> None:
    """Raise DuplicateIdError if an id with one of these digests [m], increasing, comes twice."""
    first_rows: dict[int | bytes, int] = {}
    before = 0
    for ids in parts:
        digests = ids.digests()
        place = np.minimum(np.searchsorted(suspects, digests), len(suspects) - 1)
        for row in np.flatnonzero(suspects[place] == digests).tolist():
            first = first_rows.setdefault(ids.value(row), before + row)
            if first != before + row:
                rows = f"rows {first:,} and {before + row:,} (the first is row 0)"
                raise repeated_id(f"{rows} have the same id")
        before += len(ids)
