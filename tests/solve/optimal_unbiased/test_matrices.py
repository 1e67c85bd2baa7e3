"""Few labels are solved for with dense matrices, and others with sparse ones: with one answer."""

import numpy as np
import pytest

from labeldp_compile.solve.optimal_unbiased import matrices, solve_optimal_unbiased


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_both_kinds_find_one_optimum(epsilon, monkeypatch):
    prior = np.random.default_rng(3).exponential(size=30)
    few = solve_optimal_unbiased(np.arange(30.0), prior, epsilon)
    monkeypatch.setattr(matrices, "FEW_LABELS", 0)
    many = solve_optimal_unbiased(np.arange(30.0), prior, epsilon)
    for solution in (few, many):
        assert solution.gap <= 1e-8
    assert few.loss == pytest.approx(many.loss, rel=2e-8)
    assert few.lower_bound <= many.loss * (1 + 1e-12)
    assert many.lower_bound <= few.loss * (1 + 1e-12)
