"""Find ids that are in a column twice, exactly.

Only a digest of 64 bits of each id is compared. If no digest occurs twice, no id does. Otherwise
the ids are compared, since two ids can have one digest by chance (once in 2^64 pairs).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.ids import Ids, repeated_id

_TABLE_ROWS = 1 << 21
_PART_ROWS = 1 << 17  # that are compared at once
_ROUNDS = 16
_ODD = np.uint64(0x9E3779B97F4A7C15)
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
