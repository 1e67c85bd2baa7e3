"""Pruning in the least-weight subsequence loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeldp_compile.solve.rr_on_bins import Cuts, WeightedRuns
from tests.solve.bins_reference import repeatable


def many_labels(shape, size):
    rng = np.random.default_rng(7)
    labels = np.cumsum(rng.exponential(size=size))
    if shape == "noisy":
        prior = rng.exponential(size=size)
    elif shape == "sparse":
        prior = np.maximum(rng.normal(size=size) + 40 * 0.99 ** np.arange(size), 0.0)
    else:
        prior = 0.97 ** np.arange(size) + 1e-9
    return labels, prior


@settings(repeatable, max_examples=60)
@given(st.integers(2, 60), st.integers(1, 12), st.floats(0, 2), st.integers(0, 2**32 - 1))
def test_narrowing_keeps_the_shortest_path(size, blocks, penalty, seed):
    rng = np.random.default_rng(seed)
    table = np.zeros((size + 1, size + 1))
    for length in range(1, size + 1):
        for start in range(size + 1 - length):
            stop = start + length
            inner = max(table[start, stop - 1], table[start + 1, stop])
            table[start, stop] = inner + rng.exponential() * (rng.random() < 0.7)
    least = np.zeros(size + 1)
    for stop in range(1, size + 1):
        least[stop] = (least[:stop] + table[:stop, stop]).min() + penalty
    cuts = Cuts.blocks(size, blocks)
    while not cuts.exact:
        runs = WeightedRuns(cuts, lambda start, stop: table[start, stop])
        assert runs.shortest(penalty).weight[-1] <= least[-1] * (1 + 1e-12)
        cuts = runs.narrow(penalty, least[-1] * (1 + 1e-12))
    paths = WeightedRuns(cuts, lambda start, stop: table[start, stop]).shortest(penalty)
    path = cuts.first[paths.best()]
    assert (path[0], path[-1]) == (0, size)
    weight = table[path[:-1], path[1:]].sum() + penalty * (path.size - 1)
    assert weight == pytest.approx(least[-1], rel=1e-12)
    assert paths.weight[-1] == pytest.approx(least[-1], rel=1e-12)
