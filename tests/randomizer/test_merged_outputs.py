"""Rare outputs are merged at their weighted mean, and nothing else changes."""

import numpy as np
import pytest

from labeldp_compile.rounding.windows import merge_rare_outputs


def test_rare_outputs_join_their_nearest_neighbour():
    values = np.array([-9.0, 0.0, 1.0, 1.1, 5.0])
    weights = np.array([1e-7, 0.3, 0.3, 1e-6, 0.4])
    v, c = merge_rare_outputs(values, weights, 1e-3)
    assert v == pytest.approx([-3e-6, 1.0000003333, 5.0], abs=1e-8)
    assert c == pytest.approx([0.3000001, 0.300001, 0.4])
    assert v @ c == pytest.approx(values @ weights, rel=1e-12)


def test_nothing_is_merged_where_nothing_is_rare():
    values, weights = np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.5, 0.3])
    v, c = merge_rare_outputs(values, weights, 0.1)
    assert np.array_equal(v, values) and np.array_equal(c, weights)


def test_two_outputs_always_remain():
    v, c = merge_rare_outputs(np.arange(5.0), np.full(5, 0.2), 0.9)
    assert len(v) == len(c) == 2
    assert c.sum() == pytest.approx(1.0)
