"""A short run of benchmarks/staged_release_audit.py."""

import pytest

pytest.importorskip("labeldp_trainer.staged_release.draw")

from benchmarks.staged_release_audit import by_attacker, by_model, by_runs, cases


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classes", "numbers", "users"])
@pytest.mark.parametrize("audit", [by_attacker, by_model])
def test_neighbours_are_told_apart_as_stated_and_no_better(name, audit):
    case = cases(1.0)[name]
    assert 0.2 < audit(case, 10_000, 1) <= 1
    if name == "classes":  # a third of the noise
        assert audit(case, 10_000, 3) > 1.2


def test_whole_runs_are_counted():
    found, runs = by_runs(cases(1.0)["numbers"], 0.5)
    assert 0 <= found <= 1 <= runs
