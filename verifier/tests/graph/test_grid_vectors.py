"""Lookup grids by the vector: written and read as a walk over every point of the lines says."""

import random
from itertools import pairwise

import pytest
from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph.bucket_grid import BucketGrid, choose_grid, grid_entries
from labeldp_verify.kernel import Lookup, Refused


def plain_segments(entries, grid, lines):
    """Where segments begin and their numbers, point by point; None where one is below 0."""
    begins, numbers, behind = [], [], 0
    for start, stop, shift in grid.stretches(lines):
        for t in range(start, stop):
            raised = t + entries[(t >> shift) - (start >> shift) + behind]
            if raised < 0:
                return None
            if [raised >> grid.segment_shift] != numbers[-1:]:
                begins.append(t)
                numbers.append(raised >> grid.segment_shift)
        behind += ((stop - 1) >> shift) + 1 - (start >> shift)
    return begins, numbers


def lookup_of(entries, grid, lines):
    """The same table as the kernel reads it from a file."""
    stretches = zip(grid.stretches(lines), grid.starts(lines), strict=True)
    listed = [(*stretch, start) for stretch, start in stretches]
    return Lookup(listed, entries, grid.segment_shift)


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
        for grid in grids_of(r, randomizer, cuts):
            try:
                honest = grid_entries(randomizer, grid)
            except ValueError:
                assert grid.far_shift or grid.extra_shift  # a bucket would hold two boundaries
                continue
            begins, numbers = plain_segments(honest, grid, randomizer)
            assert begins == randomizer.boundaries()[:-1]
            assert numbers == list(range(len(begins)))
            empty += grid.far_shift is not None and grid.far_start == begins[-1]
            for trial in range(8):
                entries, unit = list(honest), 1 << grid.segment_shift
                if trial:
                    step = r.choice([1, -1, unit, -unit, r.randint(-300, 300)])
                    entries[r.randrange(len(entries))] += step
                expected = plain_segments(entries, grid, randomizer)
                try:
                    found = lookup_of(entries, grid, randomizer).segments()
                except Refused:
                    found, refused = None, refused + 1
                assert found == expected
                read += found is not None
    assert refused > 30 and read > 300 and empty > 5


@pytest.mark.parametrize("entry", [2**63 - 1, -(2**63), -(2**62)])
def test_entries_that_would_overflow_are_refused(entry):
    randomizer, _ = lines_of(random.Random(0))
    end = randomizer.base_total + randomizer.extra_total
    for at in (1, randomizer.base_total, end - 1):
        entries = grid_entries(randomizer, BucketGrid(0, 0))
        entries[at] = entry
        with pytest.raises(Refused, match="the grid"):
            lookup_of(entries, BucketGrid(0, 0), randomizer).segments()


@pytest.mark.parametrize("count", [1, -1])
def test_a_table_of_another_size_is_refused(count):
    randomizer, _ = lines_of(random.Random(0))
    entries = [0] * (randomizer.base_total + randomizer.extra_total + count)
    with pytest.raises(Refused, match="wrong size of a grid"):
        lookup_of(entries, BucketGrid(0, 0), randomizer).segments()
