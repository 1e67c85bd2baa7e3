"""The window randomizer in the constants of a graph.

Its integers are read from the very table that the graph gathers from, not from a copy beside it.
The graph is tried on both sides of every segment boundary: at the words just below and at each cut,
for every label (or, where that would be more than ``MAX_PAIRS`` pairs, for the first and last word
of every label's window and each boundary with one label).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.decode.file import (
    MAX_PAIRS,
    Constants,
    FileForm,
    Rows,
    Words,
    check_outputs,
    demand,
)
from labeldp_verify.forms import Domain, WindowRandomizer
from labeldp_verify.forms.window import Segment
from labeldp_verify.graph import BucketGrid, write_model
from labeldp_verify.graph.messages import ModelProto
from labeldp_verify.graph.nodes import INT64, UINT64

_MOST = 2**63 - 1


class WindowFile(FileForm):
    """A window randomizer and the layout of its lookup grid."""

    def __init__(self, randomizer: WindowRandomizer, grid: BucketGrid) -> None:
        """What ``read`` decoded."""
        self.randomizer: WindowRandomizer = randomizer
        self.grid = grid

    @classmethod
    def read(cls, model: ModelProto, domain: Domain) -> WindowFile:
        """Decode the constants of the graph."""
        return cls(*read_window(model, domain))

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] on both sides of the boundaries."""
        rows, u = boundary_pairs(self.randomizer)
        low = np.uint64(64 - self.randomizer.word_bits)
        words = u.astype(np.uint64) << low
        words[1::2] |= (np.uint64(1) << low) - np.uint64(1)  # bits below u must not matter
        return rows, words[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] and words [n, 1]."""
        u = (words[:, 0] >> np.uint64(64 - self.randomizer.word_bits)).astype(np.int64)
        return _outputs_of(self.randomizer, rows, u)

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers and this grid define."""
        return write_model(domain, self.randomizer, certificate, self.grid)


def read_window(model: ModelProto, domain: Domain) -> tuple[WindowRandomizer, BucketGrid]:
    """The randomizer that the graph's tables describe, and how its lookup grid is laid out."""
    constants = Constants(model)
    (word_shift,) = constants.integers("word_shift", UINT64, 0)
    (T,) = constants.integers("base_total", INT64, 0)
    offsets = constants.integers("offsets", INT64, 1)
    demand(1 <= word_shift <= 63, "the word size")
    demand(len(offsets) == domain.size, "the number of offsets")
    word_bits = 64 - word_shift
    X = 2**word_bits - T
    demand(T >= 1 and X >= 0 and min(offsets) >= 0, "the base line and the offsets")
    end = T + X + max(offsets)
    demand(end < 2**63, "the length of the lines")

    grid = read_grid(constants)
    entries = constants.vector("grid")
    boundaries = read_boundaries(entries, grid, T, end)
    demand(T in boundaries, "the end of the base line")
    m = boundaries.index(T)
    lengths = [b - a for a, b in pairwise(boundaries)]

    values = constants.values("segment_values")
    demand(len(values) == len(lengths), "the number of segments")
    outputs = values[:m]
    check_outputs(outputs, domain)
    index = {value: i for i, value in enumerate(outputs)}
    demand(all(v in index for v in values[m:]), "the outputs of the extra line")
    extra = [Segment(n, index[v]) for n, v in zip(lengths[m:], values[m:], strict=True)]
    randomizer = WindowRandomizer(
        word_bits, tuple(lengths[:m]), tuple(extra), tuple(offsets), tuple(outputs)
    )
    return randomizer, grid


def read_grid(constants: Constants) -> BucketGrid:
    """The widths of the buckets, and where the far ones begin."""
    if constants.has("bucket_shift"):
        (shift,) = constants.integers("bucket_shift", UINT64, 0)
        grid = BucketGrid(shift, shift)
    elif constants.has("bucket_shifts"):  # from format 1.4 on
        shifts = constants.integers("bucket_shifts", UINT64, 1)
        demand(2 <= len(shifts) <= 3, "the number of grids")
        grid = BucketGrid(*shifts)
        if len(shifts) == 3:
            (far_point,) = constants.integers("far_point", INT64, 0)
            grid = replace(grid, far_start=far_point)
    else:
        (base,) = constants.integers("base_bucket_shift", UINT64, 0)
        (extra,) = constants.integers("extra_bucket_shift", UINT64, 0)
        grid = BucketGrid(base, extra)
    if constants.has("far_bucket_shift"):
        (far,) = constants.integers("far_bucket_shift", UINT64, 0)
        (far_point,) = constants.integers("far_point", INT64, 0)
        grid = BucketGrid(grid.base_shift, grid.extra_shift, far, far_point)
    (segment_shift,) = constants.integers("segment_shift", UINT64, 0)
    demand(segment_shift == grid.segment_shift <= 62, "the bucket widths")
    return grid


def read_boundaries(entries: NDArray[np.int64], grid: BucketGrid, T: int, end: int) -> list[int]:
    """The ends of all segments, found by asking the table at both ends of every bucket."""
    if grid.is_single:
        lines = [(0, end, grid.base_shift)]
    elif grid.far_shift is None:
        demand(end > T, "a grid for an empty line")
        lines = [(0, T, grid.base_shift), (T, end, grid.extra_shift)]
    else:
        demand(T < grid.far_start < end, "the start of the far grid")
        lines = [(0, T, grid.base_shift), (T, grid.far_start, grid.extra_shift)]
        lines.append((grid.far_start, end, grid.far_shift))
    stretches, size = [], 0
    for start, stop, shift in lines:
        stretches.append((start, stop, shift, size - (start >> shift)))
        size += ((stop - 1) >> shift) + 1 - (start >> shift)
    demand(len(entries) == size, "the size of the grid")
    boundaries, last = [np.zeros(1, np.int64)], 0
    segment, segment_shift = 0, grid.segment_shift
    for start, stop, shift, at in stretches:
        if start:
            demand(last < start, "the grid")
            boundaries.append(np.array([start]))
            segment += 1
        buckets = np.arange(start >> shift, ((stop - 1) >> shift) + 1)
        q = entries[buckets[0] + at : buckets[-1] + at + 1]
        low = buckets << shift
        high = np.minimum(low + ((1 << shift) - 1), stop - 1)
        low[0] = start
        # Both ends of a bucket, as the graph moves them, are points below 2^63.
        demand(bool(np.all((q >= -low) & (q <= _MOST - high))), "the grid")
        at_low, at_high = (low + q) >> segment_shift, (high + q) >> segment_shift
        before = np.concatenate([[segment], at_high[:-1]])
        begins, cuts = at_low - before, at_high - at_low
        steps = (begins == 0) | (begins == 1), (cuts == 0) | (cuts == 1)
        demand(bool(np.all(steps[0] & steps[1])), "the grid")
        cut = (at_high << segment_shift) - q
        demand(bool(np.all((cuts == 0) | ((low < cut) & (cut <= high)))), "the grid")
        found = np.column_stack([low, cut]).ravel()
        found = found[np.column_stack([begins, cuts]).ravel() == 1]
        boundaries.append(found)
        last = int(found[-1]) if len(found) else start
        segment = int(at_high[-1])
    boundaries.append(np.array([end]))
    return np.concatenate(boundaries).tolist()  # type: ignore[no-any-return]


def _outputs_of(
    randomizer: WindowRandomizer, rows: NDArray[np.int64], u: NDArray[np.int64]
) -> NDArray[Any]:
    """What the integers demand for row indices [n] and B-bit words u [n]."""
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    t = np.where(u >= randomizer.base_total, u + offsets[rows], u)
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    segments = np.searchsorted(boundaries, t, side="right") - 1
    owners = np.array(randomizer.segment_outputs(), dtype=np.int64)[segments]
    numeric = isinstance(randomizer.values[0], float | int)
    return np.array(randomizer.values, dtype=None if numeric else object)[owners]


def boundary_pairs(
    randomizer: WindowRandomizer, most: int = MAX_PAIRS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row indices and words u on both sides of every cut, or of fewer where that is above ``most``.

    One of many tables has few pairs to itself: of those they are ``most``, evenly spread.
    """
    T, X, last = randomizer.base_total, randomizer.window, randomizer.words - 1
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    base_cuts = boundaries[: len(randomizer.base) + 1]
    extra_cuts = boundaries[len(randomizer.base) :]
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    k = len(offsets)
    if k * 2 * len(boundaries) <= most:
        pairs = [(np.full(len(base_cuts), y), base_cuts) for y in range(k)]
        for y, s in enumerate(offsets):
            inside = extra_cuts[(extra_cuts >= T + s) & (extra_cuts <= T + s + X)]
            pairs.append((np.full(len(inside) + 2, y), np.append(inside - s, [T, last + 1])))
    else:
        everyone = np.arange(k)
        pairs = [
            (np.arange(len(base_cuts)) % k, base_cuts),
            (everyone, np.full(k, T)),
            (everyone, np.full(k, last + 1)),
        ]
        order = np.argsort(offsets, kind="stable")
        reach = np.searchsorted(offsets[order], extra_cuts - T, side="right") - 1
        rows = order[np.maximum(reach, 0)]  # the label whose window starts last before the cut
        pairs.append((rows, extra_cuts - offsets[rows]))
    rows = np.concatenate([r for r, _ in pairs for _ in range(2)])
    cuts = np.concatenate([c - d for _, c in pairs for d in (1, 0)])
    keep = np.flatnonzero((cuts >= 0) & (cuts <= last))
    if most < MAX_PAIRS and len(keep) > most:
        keep = keep[np.linspace(0, len(keep) - 1, most).astype(np.int64)]
    return rows[keep].astype(np.int64), cuts[keep]
