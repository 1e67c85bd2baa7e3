"""Progress of long solves says how much time is left, or that it is unknown."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import labeldp_compile
from labeldp_compile import observer
from labeldp_compile.build import tables
from labeldp_compile.mechanisms.mechanism import Solved
from labeldp_compile.observer import Observer, time_left
from labeldp_compile.rounding.randomized_response import randomized_response
from labeldp_compile.solve.optimal_unbiased.optimum import solve_optimal_unbiased
from labeldp_compile.sweeps import sweep
from tests.fixtures.compiled import INTEGER_SPEC

SECONDS = 10  # of each solve


@pytest.fixture
def clock(monkeypatch):
    """The time of all modules that tell it; a test moves it on."""
    clock = SimpleNamespace(now=100.0)
    for module in (observer, sweep, tables):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_words(clock):
    assert time_left(100.0, 0, 5) == "time left unknown"
    clock.now = 400.0
    assert time_left(100.0, 3, 20) == "about 2,000 s left"


def test_of_tables(clock, monkeypatch):
    """The first solves, those that processes would share, and both rounds."""
    monkeypatch.setattr(tables, "_ALONE_SECONDS", float("inf"))
    lines, total = [], 24

    def solve(weights, bits):
        clock.now += SECONDS
        values = [float(y) for y in range(weights[0])]
        return Solved(randomized_response(values, [0, weights[0] - 1], Fraction(1), bits))

    weights = [(k,) for k in range(2, 2 + total // 2)]
    tables.build_tables(solve, weights, Observer(step=lines.append))
    assert lines == [
        f"{done} of {total} solves of tables are done, about {SECONDS * (total - done)} s left"
        for done in range(1, total + 1)
    ]


def test_of_a_sweep(clock, monkeypatch, tmp_path):
    real = sweep.measure

    def measure(*arguments):
        clock.now += SECONDS
        return real(*arguments)

    monkeypatch.setattr(sweep, "measure", measure)
    path, lines = tmp_path / "spec.yaml", []
    path.write_text(INTEGER_SPEC, encoding="utf-8")
    # The mechanism of the spec is a third one.
    options = {"mechanisms": ["laplace", "randomized_response"], "progress": lines.append}
    labeldp_compile.sweep(path, epsilons=["1", "2"], spend_prior=True, **options)
    steps = [line.partition("; ")[2] for line in lines if " of 6: ε = " in line]
    assert steps == [
        "time left unknown",
        *(f"about {SECONDS * rest} s left" for rest in (5, 4, 3, 2, 1)),
    ]


def test_of_an_optimum_it_is_unknown_until_the_gap_is_reached():
    lines, y = [], np.arange(400.0)
    solve_optimal_unbiased(y, np.full(400, 1 / 400), 1.0, observer=Observer(step=lines.append))
    bounds = [line for line in lines if line.startswith("bound: ")]
    assert bounds[0].endswith("; time left unknown") and ", wanted " in bounds[0]
    assert "unknown" not in bounds[-1] and "wanted" not in bounds[-1]
