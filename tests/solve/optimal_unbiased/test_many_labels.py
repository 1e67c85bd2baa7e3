"""From coarse levels to all labels: the interior point, its matrix, and what groups tell."""

import numpy as np
import pytest
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased import many_labels
from labeldp_compile.solve.optimal_unbiased.cone_program import solve_system
from labeldp_compile.solve.optimal_unbiased.many_labels import solve_near
from labeldp_compile.solve.optimal_unbiased.optimum import solve_optimal_unbiased
from labeldp_compile.solve.optimal_unbiased.problem import (
    Columns,
    Iterate,
    all_intervals,
    coarsen,
    extra_line,
)
from tests.solve.optimal_unbiased.test_optimal_unbiased import make_prior, problem_of


def two_bumps(k):
    x = np.arange(k) / k
    p = np.exp(-(((x - 0.25) / 0.07) ** 2) / 2) + np.exp(-(((x - 0.7) / 0.1) ** 2) / 2) / 2
    return p / p.sum()


@pytest.mark.parametrize("kind", ["uniform", "geometric", "spiked"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0])
def test_the_interior_point_finds_the_optimum_over_all_intervals(kind, epsilon):
    problem = problem_of(kind, 24, epsilon)
    best = solve_optimal_unbiased(problem.labels, problem.prior, epsilon, tolerance=1e-11)
    every = all_intervals(24)
    columns = Columns(every, np.full(len(every), 1e-3), np.zeros(len(every)))
    found = solve_near(problem, Iterate(columns, np.full(24, -1.0), np.zeros(24)), 1e-10)
    assert found is not None
    bound = found.alpha.sum() + found.beta @ problem.labels
    assert bound == pytest.approx(best.loss, rel=1e-8)
    inside = (np.arange(24)[:, None] >= every.first) & (np.arange(24)[:, None] <= every.last)
    table = found.columns.weights * np.where(inside, 1.0, problem.low)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-6)
    np.testing.assert_allclose(table @ found.columns.values, problem.labels, rtol=0, atol=1e-6)


def test_a_start_without_a_mechanism_is_given_up():
    problem = problem_of("uniform", 30, 1.0)
    # Intervals of one length away from the ends: no mechanism has only these.
    few = all_intervals(30).take(np.array([40, 41]))
    start = Iterate(Columns(few, np.ones(2), np.zeros(2)), np.zeros(30), np.zeros(30))
    assert solve_near(problem, start, 1e-9) is None


@pytest.mark.parametrize("kind", ["uniform", "spiked", "sparse"])
def test_groups_keep_mass_and_mean_and_never_merge_the_ends(kind):
    problem = problem_of(kind, 101, 1.0)
    level = coarsen(problem)
    coarse = level.problem
    assert 50 <= coarse.k < 80
    assert (np.diff(coarse.labels) > 0).all()
    assert (np.diff(level.parent) >= 0).all() and level.parent[-1] == coarse.k - 1
    np.testing.assert_allclose(np.bincount(level.parent, problem.prior), coarse.prior)
    mean = np.bincount(level.parent, problem.prior * problem.labels)
    np.testing.assert_allclose(mean, coarse.prior * coarse.labels, atol=1e-15)
    assert (level.parent[[1, -2]] == [1, coarse.k - 2]).all()
    assert coarse.labels[0] == problem.labels[0] and coarse.labels[-1] == problem.labels[-1]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_twenty_thousand_labels_within_1e_7_of_the_least_loss(epsilon):
    prior = two_bumps(20_000)
    found = solve_optimal_unbiased(np.arange(20_000.0), prior, epsilon, tolerance=1e-7)
    assert 0 <= found.gap <= 1e-7
    assert len(found.values) < 40_000
    line = extra_line(found.values, found.weights * np.exp(epsilon), float(np.exp(-epsilon)))
    np.testing.assert_allclose(line.means(found.starts), np.arange(20_000.0), atol=1e-5)


@pytest.mark.slow
def test_levels_that_stall_get_the_intervals_that_they_lack():
    labels = np.arange(100_000.0)
    found = solve_optimal_unbiased(labels, (1 + labels) ** -1.5, 4.0, tolerance=1e-7)
    assert 0 <= found.gap <= 1e-7
    assert len(found.values) < 100_000  # without going through all levels


def test_a_level_whose_interior_point_fails_goes_to_the_cone_program(monkeypatch):
    monkeypatch.setattr(many_labels, "solve_near", lambda *_: None)
    labels, prior = np.arange(300.0), make_prior("geometric", 300)
    found = solve_optimal_unbiased(labels, prior, 1.0, tolerance=1e-8)
    assert found.gap <= 1e-8


@pytest.mark.parametrize("n", [30, 700])
def test_a_system_is_solved_to_rounding_or_is_singular(n):
    rng = np.random.default_rng(n)
    system = sparse.random(n, n, 3 / n, rng=rng, format="csc") + sparse.identity(n, format="csc")
    answer = rng.normal(size=n)
    found = solve_system(system, system @ answer)
    np.testing.assert_allclose(system @ found, system @ answer, rtol=0, atol=1e-12)
    singular = sparse.diags(np.arange(n, dtype=np.float64), format="csc")
    assert solve_system(singular, answer) is None
