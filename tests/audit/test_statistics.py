"""The parts of an audit: search, dependence, chi-square, cells."""

import numpy as np
import pytest

from labeldp_compile.audits.randomizer import IntervalCells, ValueCells, choose_cells
from labeldp_compile.audits.statistics import (
    Tally,
    bound_epsilon,
    search_events,
    shared_between,
    shared_inside,
)

ERROR = 1e-7


def tally(generator, table, samples):
    counts = np.array([generator.multinomial(samples, row) for row in table])
    return Tally(counts, np.full(len(table), samples))


def test_the_search_is_not_fooled_by_noise():
    # Equal rows: whatever looks like a difference is chance, and the bound must not repeat it.
    generator = np.random.default_rng(1)
    table = np.full((20, 500), 1 / 500)
    bounds = []
    for _ in range(30):
        halves = tally(generator, table, 20_000), tally(generator, table, 20_000)
        events = search_events(halves, 8, 8)
        assert len({y for e in events for y in (e.label, e.other)}) <= 8
        bounds.append(bound_epsilon(events, tally(generator, table, 20_000), 0.05).bound)
    assert sum(bound > 0 for bound in bounds) <= 6


def test_the_search_finds_the_pair_and_the_set():
    generator = np.random.default_rng(2)
    table = np.full((20, 500), 1 / 500)
    table[7, :50] *= 2
    table[7, 50:] *= 8 / 9
    halves = tally(generator, table, 20_000), tally(generator, table, 20_000)
    event = search_events(halves, 4, 4)[0]
    assert event.label == 7
    assert event.cells[:50].mean() > 0.5 > event.cells[50:].mean()


@pytest.mark.parametrize("distance", [1, 1000, 4096, 8192])
def test_shared_words_are_found_at_every_distance(distance):
    generator = np.random.default_rng(distance)

    def bits():
        words = generator.random((4, 4096))
        if distance == 4096:
            words[:] = words[0]
        elif distance == 8192:
            words[2:] = words[:2]
        else:
            words = np.array([np.resize(row[:distance], 4096) for row in words])
        return words.ravel() < 0.3

    found = shared_inside(bits(), bits(), ERROR)
    assert found is not None
    assert found.together > found.independent + 0.05


def test_independent_rows_are_not_accused():
    generator = np.random.default_rng(3)
    for share in (0.5, 0.02, 0.0, 1.0):
        bits = [generator.random(8192) < share for _ in range(2)]
        assert shared_inside(*bits, ERROR) is None
        assert shared_between(*bits, ERROR) is None


@pytest.mark.parametrize("shift", [0, 17, -300])
def test_repeated_words_of_another_process_are_found(shift):
    generator = np.random.default_rng(4)
    words = generator.random(6000)
    one, two = words[500:4596] < 0.4, words[500 - shift : 4596 - shift] < 0.4
    found = shared_between(one, two, ERROR)
    assert found is not None and found.distance == shift


def test_cells_partition_all_outputs():
    few = choose_cells(np.array([3, 1, 1, 2] * 2))
    assert isinstance(few, ValueCells) and few.count == 4
    assert few.indices(np.array([1, 2, 3, 7, -1])).tolist() == [0, 1, 2, 3, 3]
    many = choose_cells(np.append(np.random.default_rng(8).normal(size=50_000), np.nan))
    assert isinstance(many, IntervalCells)
    counts = np.bincount(many.indices(np.array([-np.inf, 0.0, np.inf, np.nan])))
    assert counts[0] == counts[-2] == counts[-1] == 1
    text = choose_cells(np.array(["b", "a", "b", "a", "b"], dtype=object))
    assert text.indices(np.array(["b", "a", "c", None], dtype=object)).tolist() == [0, 1, 2, 2]
    assert text.indices(np.array([1.0], dtype=object)).tolist() == [2]
