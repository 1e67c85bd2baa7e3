"""``labeldp sweep --target`` hits what it is asked for, says a simulation of what it chose."""

import math
from collections import Counter

import numpy as np
import pytest

from labeldp_compile import InputError, choose
from labeldp_compile.sweeps import choice as choice_module
from tests.fixtures.random_targets import compiled, random_demand, simulated_error

TARGETS, REPETITIONS = 20, 4_000  # benchmarks/choose.py tries 200, with 20,000


@pytest.mark.slow
def test_simulated_errors_are_those_that_were_asked_for(tmp_path, monkeypatch):
    """The error is never more than 5 % above the target (1.1 % is the simulation's own deviation).

    Inside the range of ε no mechanism meets the target at the next smaller ε. There the error of a
    label is not 5 % below the target either, that of means and shares not by 65 %, for which the
    target is a bound for all labels; but where the chosen mechanism is of no use at the smaller ε
    (two labels that no output tells apart, for instance), so that its figure jumps.
    """
    tried = {}
    try_at = choice_module.Bench.try_at

    def noted(bench, mechanism, epsilon):
        trial = try_at(bench, mechanism, epsilon)
        tried[mechanism.title, epsilon] = trial.excess(bench.targets)
        return trial

    monkeypatch.setattr(choice_module.Bench, "try_at", noted)
    draw, kinds, winners = np.random.default_rng(1), Counter(), set()
    for _ in range(TARGETS):
        demand = random_demand(draw)
        (tmp_path / "asked.yaml").write_text(demand.text, encoding="utf-8")
        tried.clear()
        try:
            choice = choose(tmp_path / "asked.yaml", **demand.asked)
        except InputError as error:
            assert error.exit_code == 1 and "no ε ≤ 20" in str(error)
            kinds["unreached"] += 1
            continue
        artifact = compiled(demand, choice.spec_lines())
        assert artifact.certificate.privacy.epsilon_label == float(choice.epsilon)
        error = simulated_error(demand, artifact, draw, REPETITIONS)
        assert error <= 1.05 * demand.most
        if choice.missed_at is None:
            kinds["end"] += 1
            continue
        kinds[demand.kind] += 1
        winners.add(choice.chosen.mechanism.kind)
        excess = tried[choice.chosen.mechanism.title, choice.missed_at]
        assert excess > 0
        kinds["jump"] += excess == math.inf
        near = 0.95 if demand.kind == "label_error" else 0.35
        assert error >= near * demand.most or excess == math.inf
        for standing in choice.standings[1:]:
            if standing.epsilon is None:
                assert standing.tried >= choice.missed_at
                assert tried[standing.mechanism.title, standing.tried] > 0
            else:
                assert standing.epsilon > choice.epsilon
    assert min(kinds[kind] for kind in ("mean_error", "share_error", "label_error")) >= 3
    assert kinds["end"] + kinds["unreached"] + kinds["jump"] <= TARGETS / 4
    assert len(winners) >= 4
