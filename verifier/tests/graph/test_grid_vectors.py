"""Lookup grids by the vector: written and read as a walk over every point of the lines says."""

import random
from itertools import pairwise

import numpy as np
import pytest
from labeldp_verify.decode.file import DecodeError
from labeldp_verify.decode.window import read_boundaries
from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.forms.window import Segment
from labeldp_verify.graph.bucket_grid import BucketGrid, choose_grid, grid_entries


def plain_boundaries(entries, grid, lines):
    """The ends of all segments, or None where two neighbouring points are no neighbours."""
    found, segment, behind = [0], 0, 0
    for start, stop, shift in grid.stretches(lines):
        if start:
            if found[-1] >= start:
                return None
            found.append(start)
            segment += 1
        for t in range(start, stop):
            there = (t + entries[(t >> shift) - (start >> shift) + behind]) >> grid.segment_shift
            if there not in (segment, segment + 1):
                return None
            if there > segment:
                found.append(t)
            segment = there
        behind += ((stop - 1) >> shift) + 1 - (start >> shift)
    return [*found, lines.base_total + lines.extra_total]


def lines_of(r):
    m, number = r.randint(1, 5), r.randint(1, 6)
    base = [r.randint(1, 256 // (2 * m)) for _ in range(m)]
    window = 256 - sum(base)
    end = window + r.randint(0, 100)
    cuts = [0, *sorted(r.sample(range(1, end), number - 1)), end]
    extra = [Segment(b - a, r.randrange(m)) for a, b in pairwise(cuts)]
    values = tuple(float(i) for i in range(m))
    return WindowRandomizer(8, tuple(base), tuple(extra), (end - window,), values), cuts


def grids_of(r, randomizer, cuts):
    """Narrow buckets, on one to three stretches; the far one may hold no boundary."""
    yield choose_grid(randomizer)
    yield BucketGrid(0, 0)
    yield BucketGrid(0, r.randint(0, 1))
    if len(cuts) > 2:
        yield BucketGrid(0, 0, r.choice([0, 1, 5]), randomizer.base_total + r.choice(cuts[1:-1]))


def test_grids_are_what_their_points_say():
    refused = read = empty = 0
    for seed in range(80):
        r = random.Random(seed)
        randomizer, cuts = lines_of(r)
        T, end = randomizer.base_total, randomizer.base_total + randomizer.extra_total
        for grid in grids_of(r, randomizer, cuts):
            try:
                honest = grid_entries(randomizer, grid)
            except ValueError:
                assert grid.far_shift or grid.extra_shift  # a bucket would hold two boundaries
                continue
            assert plain_boundaries(honest, grid, randomizer) == randomizer.boundaries()
            empty += grid.far_shift is not None and grid.far_start == T + cuts[-2]
            for trial in range(8):
                entries, unit = list(honest), 1 << grid.segment_shift
                if trial:
                    step = r.choice([1, -1, unit, -unit, r.randint(-300, 300)])
                    entries[r.randrange(len(entries))] += step
                expected = plain_boundaries(entries, grid, randomizer)
                try:
                    found = read_boundaries(np.array(entries, dtype=np.int64), grid, T, end)
                except DecodeError:
                    found, refused = None, refused + 1
                assert found == expected
                read += found is not None
    assert refused > 300 and read > 300 and empty > 5


@pytest.mark.parametrize("entry", [2**63 - 1, -(2**63), 2**62, -(2**62)])
def test_entries_that_would_overflow_are_refused(entry):
    randomizer, _ = lines_of(random.Random(0))
    T, end = randomizer.base_total, randomizer.base_total + randomizer.extra_total
    for at in (0, T, end - 1):
        entries = np.array(grid_entries(randomizer, BucketGrid(0, 0)), dtype=np.int64)
        entries[at] = entry
        with pytest.raises(DecodeError, match="the grid"):
            read_boundaries(entries, BucketGrid(0, 0), T, end)
