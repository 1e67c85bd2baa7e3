"""A short run of benchmarks/gradient_audit.py: noisy steps of neighbours, told apart as stated."""

import pytest
from scipy import stats

pytest.importorskip("labeldp_trainer.dp_gradient.step")

from benchmarks.gradient_audit import CASES, Audit


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_steps_of_neighbours_are_told_apart_as_stated_and_no_better(name):
    case = CASES[name]
    config = case.config(1.0)
    audit = Audit(case, config)
    assert 0.2 < audit.proved(20_000, config.lattice.sigma) <= 1
    for seen in audit.residues.values():
        assert stats.chisquare(seen).pvalue > 1e-10
    assert audit.proved(20_000, config.lattice.sigma // 3) > 1.1
