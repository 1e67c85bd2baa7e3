"""Lookup tables that find the segment of a point on the line with one gather.

A line is cut into buckets of 2^shift points, each holding at most one segment boundary. For a
bucket, let ``id`` be the segment at its first point. The table stores one integer q such that

    segment(t) = (t + q) >> segment_shift        for every t in the bucket:

    no boundary inside:  q = (id << segment_shift) − first point of the bucket
    boundary at c:       q = ((id + 1) << segment_shift) − c

because |t − c| < 2^shift ≤ 2^segment_shift. All values stay below 2^63 (``grid_entries`` checks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.randomizer import WindowRandomizer

SINGLE_GRID_ENTRIES = 1 << 15  # 256 kB: one grid is faster while it fits a core's cache
MAX_ENTRIES = 1 << 22


@dataclass(frozen=True)
class BucketGrid:
    """Widths (log₂) of the buckets of the base line and of the extra line.

    Equal widths mean one grid over the common line. Otherwise each line has its own: at large ε
    the base segments are far narrower than the extra ones.
    """

    base_shift: int
    extra_shift: int

    @property
    def is_single(self) -> bool:
        """True if one grid serves both lines."""
        return self.base_shift == self.extra_shift

    @property
    def segment_shift(self) -> int:
        """Bits below the segment number in t + q."""
        return max(self.base_shift, self.extra_shift)

    def extra_start(self, randomizer: WindowRandomizer) -> int:
        """Table index minus bucket number for buckets of the extra line (two grids only)."""
        T = randomizer.base_total
        return ((T - 1) >> self.base_shift) + 1 - (T >> self.extra_shift)


def choose_grid(randomizer: WindowRandomizer, max_entries: int = MAX_ENTRIES) -> BucketGrid | None:
    """The grid that the compiler uses, or None where it would need more entries."""
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    m, T, end = len(randomizer.base), randomizer.base_total, int(boundaries[-1])
    widest = 62 - len(boundaries).bit_length()  # keeps (segment << shift) below 2^63
    single = _widest_shift(boundaries[1:-1], widest)
    base = _widest_shift(boundaries[1:m], widest)
    extra = _widest_shift(boundaries[m + 1 : -1], widest)
    entries_single = ((end - 1) >> single) + 1
    entries_two = ((T - 1) >> base) + 1 + ((end - 1) >> extra) + 1 - (T >> extra)
    if not randomizer.extra or entries_single <= max(SINGLE_GRID_ENTRIES, entries_two):
        return BucketGrid(single, single) if entries_single <= max_entries else None
    if base == extra:
        base -= 1  # equal widths would mean one grid; narrower buckets are always right
        entries_two += ((T - 1) >> base) + 1
    return BucketGrid(base, extra) if entries_two <= max_entries else None


def grid_entries(randomizer: WindowRandomizer, grid: BucketGrid) -> list[int]:
    """The table of q values: buckets of the base line, then of the extra line.

    Raises ValueError if a bucket holds two boundaries or a value could leave 63 bits.
    """
    boundaries = randomizer.boundaries()
    m, T, end = len(randomizer.base), randomizer.base_total, boundaries[-1]
    if len(boundaries) << grid.segment_shift >= 1 << 63:
        raise ValueError("the segment numbers do not fit above the bucket width")
    if grid.is_single:
        return _entries(boundaries, 0, grid.base_shift, grid.segment_shift)
    base = _entries(boundaries[: m + 1], 0, grid.base_shift, grid.segment_shift)
    if end == T:
        return base
    return base + _entries(boundaries[m:], m, grid.extra_shift, grid.segment_shift)


def _entries(boundaries: Sequence[int], first_id: int, shift: int, segment_shift: int) -> list[int]:
    """q for every bucket between the first and the last of the boundaries."""
    start, end = boundaries[0], boundaries[-1]
    inner = iter(boundaries[1:-1])
    following = next(inner, None)
    segment = first_id
    table = []
    for bucket in range(start >> shift, ((end - 1) >> shift) + 1):
        if following is None or following >> shift > bucket:
            table.append((segment << segment_shift) - (bucket << shift))
            continue
        segment += 1
        table.append((segment << segment_shift) - following)
        following = next(inner, None)
        if following is not None and following >> shift == bucket:
            raise ValueError("a bucket holds two segment boundaries")
    return table


def _widest_shift(inner: NDArray[np.int64], widest: int) -> int:
    """The widest bucket (log₂, at most ``widest``) that never holds two of the boundaries."""
    shift = widest
    while shift and bool(np.any(inner[1:] >> shift == inner[:-1] >> shift)):
        shift -= 1
    return shift
