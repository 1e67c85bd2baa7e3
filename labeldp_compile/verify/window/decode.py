"""The window randomizer in the constants of a graph.

Its integers are read from the very table that the graph gathers from, not from a copy beside it.
"""

from __future__ import annotations

from itertools import pairwise

import onnx

from labeldp_compile.artifact import BucketGrid
from labeldp_compile.artifact.graph import INT64, UINT64
from labeldp_compile.randomizer import Domain, WindowRandomizer
from labeldp_compile.randomizer.window import Segment
from labeldp_compile.verify.decode import Constants, check_outputs, demand


def read_window(model: onnx.ModelProto, domain: Domain) -> tuple[WindowRandomizer, BucketGrid]:
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

    grid = _read_grid(constants)
    entries = constants.integers("grid", INT64, 1)
    boundaries = _boundaries(entries, grid, T, end)
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


def _read_grid(constants: Constants) -> BucketGrid:
    if constants.has("bucket_shift"):
        (shift,) = constants.integers("bucket_shift", UINT64, 0)
        grid = BucketGrid(shift, shift)
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


def _boundaries(entries: list[int], grid: BucketGrid, T: int, end: int) -> list[int]:
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
    boundaries, segment = [0], 0
    for start, stop, shift, at in stretches:
        if start:
            demand(boundaries[-1] < start, "the grid")
            boundaries.append(start)
            segment += 1
        for bucket in range(start >> shift, ((stop - 1) >> shift) + 1):
            low, high = max(bucket << shift, start), min(((bucket + 1) << shift) - 1, stop - 1)
            q = entries[bucket + at]
            demand(low + q >= 0, "the grid")
            at_low, at_high = ((t + q) >> grid.segment_shift for t in (low, high))
            if at_low == segment + 1:
                boundaries.append(low)
                segment += 1
            demand(at_low == segment and at_high in (segment, segment + 1), "the grid")
            if at_high == segment + 1:
                cut = (at_high << grid.segment_shift) - q
                demand(low < cut <= high, "the grid")
                boundaries.append(cut)
                segment += 1
    boundaries.append(end)
    return boundaries
