"""From coarse levels to all labels: the interior point, its matrix, and what groups tell."""

import numpy as np
import pytest
from scipy import sparse

from labeldp_compile.observer import Observer
from labeldp_compile.solve.optimal_unbiased import many_labels, optimum
from labeldp_compile.solve.optimal_unbiased.cone_program import solve_system
from labeldp_compile.solve.optimal_unbiased.dual import price
from labeldp_compile.solve.optimal_unbiased.many_labels import NewtonMatrix, solve_near
from labeldp_compile.solve.optimal_unbiased.optimum import solve_optimal_unbiased
from labeldp_compile.solve.optimal_unbiased.problem import (
    BiasBudget,
    all_intervals,
    coarsen,
    moved_along,
    neighbourhood,
)
from labeldp_compile.solve.optimal_unbiased.terms import quadratics
from labeldp_compile.solve.optimal_unbiased.windows import (
    Columns,
    Iterate,
    extra_line,
    place_windows,
    placed_loss,
    window_columns,
)
from tests.solve.optimal_unbiased.test_optimal_unbiased import check, make_prior, problem_of


def two_bumps(k):
    x = np.arange(k) / k
    p = np.exp(-(((x - 0.25) / 0.07) ** 2) / 2) + np.exp(-(((x - 0.7) / 0.1) ** 2) / 2) / 2
    return p / p.sum()


@pytest.mark.parametrize("epsilon", [0.2, 3.0, 9.0])
def test_newton_matrix_is_the_sum_of_its_columns(epsilon):
    problem = problem_of("spiked", 9, epsilon)
    operator = quadratics(problem, all_intervals(9)).operator
    rng = np.random.default_rng(3)
    a, c = rng.exponential(size=(2, operator.shape[0]))
    b = c * c / a + rng.exponential(size=a.size)
    whole = sparse.bmat(
        [[operator.T @ sparse.diags(part) @ operator for part in row] for row in ((a, c), (c, b))]
    ).toarray()
    matrix = NewtonMatrix(operator)
    for _ in range(2):  # the second time with the order of the first
        right = rng.normal(size=18)
        answer = matrix.factored(a, c, b)(right)
        np.testing.assert_allclose(whole @ answer, right, rtol=0, atol=1e-9)


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


def test_two_labels_that_hold_much_of_the_prior_stay_apart():
    problem = problem_of("uniform", 400, 1.0)
    prior = problem.prior.copy()
    prior[201:203] = 0.5
    level = coarsen(type(problem)(problem.labels, prior / prior.sum(), problem.low, problem.bias))
    assert (np.bincount(level.parent)[level.parent[201:203]] == 1).all()
    assert level.problem.k < 210


@pytest.mark.parametrize("kind", ["uniform", "geometric", "sparse"])
def test_multipliers_that_move_along_are_valid_up_to_the_spread_of_a_group(kind):
    problem = problem_of(kind, 400, 1.0)
    level = coarsen(problem)
    coarse = level.problem
    best = solve_optimal_unbiased(coarse.labels, coarse.prior, 1.0, tolerance=1e-10)
    alpha, beta = moved_along(coarse, problem, level.parent, best.alpha, best.beta)
    worst = price(problem.labels, problem.prior, problem.low, alpha, beta).worst
    assert worst >= -1e-5 * best.loss
    shares = np.bincount(level.parent, beta)
    np.testing.assert_allclose(shares, best.beta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_windows_of_many_segments_and_of_few_have_the_loss_of_their_definition(epsilon):
    k = 90
    rng = np.random.default_rng(5)
    prior, labels = rng.dirichlet(np.ones(k)), np.sort(rng.uniform(-1, 1, k))
    low = float(np.exp(-epsilon))
    line = extra_line(np.sort(rng.normal(size=200)) * 4, rng.dirichlet(np.ones(200)), low)
    starts = np.sort(rng.uniform(0, line.ends[-1] - line.window, k))
    middle = np.maximum(
        np.minimum(line.ends[1:], (starts + line.window)[:, None])
        - np.maximum(line.ends[:-1], starts[:, None]),
        0.0,
    )
    table = low * line.weights + middle
    direct = 0.5 * prior @ (table * (line.values - labels[:, None]) ** 2).sum(axis=1)
    assert placed_loss(line, starts, labels, prior, low) == pytest.approx(direct, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("kind", ["uniform", "spiked", "sparse"])
def test_levels_find_what_cone_programs_find(kind, epsilon, limit):
    labels, prior = np.arange(300.0), make_prior(kind, 300)
    found = solve_optimal_unbiased(labels, prior, epsilon, tolerance=1e-9)
    check(found, labels, prior, epsilon, 1e-9)
    limit(optimum, "COARSEST", 1000)
    other = solve_optimal_unbiased(labels, prior, epsilon, tolerance=1e-9)
    assert found.loss == pytest.approx(other.loss, rel=1e-8)


@pytest.mark.parametrize("labels", [np.exp(np.linspace(0, 6, 700)), np.arange(700.0) ** 2])
def test_uneven_labels(labels):
    prior = two_bumps(700)
    found = solve_optimal_unbiased(labels, prior, 1.5, tolerance=1e-9)
    check(found, labels, prior, 1.5, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_twenty_thousand_labels_within_1e_7_of_the_least_loss(epsilon):
    prior = two_bumps(20_000)
    found = solve_optimal_unbiased(np.arange(20_000.0), prior, epsilon, tolerance=1e-7)
    assert 0 <= found.gap <= 1e-7
    assert len(found.values) < 40_000
    line = extra_line(found.values, found.weights * np.exp(epsilon), float(np.exp(-epsilon)))
    np.testing.assert_allclose(line.means(found.starts), np.arange(20_000.0), atol=1e-5)


def test_a_level_whose_interior_point_fails_goes_to_the_cone_program(monkeypatch):
    monkeypatch.setattr(many_labels, "solve_near", lambda *_: None)
    labels, prior = np.arange(300.0), make_prior("geometric", 300)
    found = solve_optimal_unbiased(labels, prior, 1.0, tolerance=1e-8)
    assert found.gap <= 1e-8


def test_neighbours_of_the_predicted_path_hold_the_next_optimum():
    """What the interior point relies on: one end by one label is enough."""
    problem = problem_of("uniform", 401, 1.0)
    level = coarsen(problem)
    best = solve_optimal_unbiased(level.problem.labels, level.problem.prior, 1.0, tolerance=1e-11)
    low = problem.low
    line = extra_line(best.values, best.weights / low, low)
    path = window_columns(line, place_windows(line, problem.labels), low).intervals
    near = neighbourhood(path, 401, 1, ends=1)
    fine = solve_optimal_unbiased(problem.labels, problem.prior, 1.0, tolerance=1e-11)
    line = extra_line(fine.values, fine.weights / low, low)
    used = window_columns(line, fine.starts, low)
    heavy = used.intervals.take(used.weights > 1e-9)
    assert np.isin(heavy.first * 401 + heavy.last, near.first * 401 + near.last).all()


@pytest.mark.slow
def test_a_largest_bias_is_priced_until_nothing_is_missing():
    # All but a hundred labels hardly ever occur, and yet may be off by no more than 1.
    k, epsilon = 1001, 4.0
    prior = np.maximum(np.floor(1e9 * 0.9 ** np.arange(k)), 1.0)
    lines = []
    found = solve_optimal_unbiased(
        np.arange(k),
        prior,
        epsilon,
        bias=BiasBudget(most=1.0),
        observer=Observer(step=lines.append),
    )
    last = [line for line in lines if line.startswith(f"level of {k} labels")]
    assert found.gap < 1e-7 and last
    assert all("steps" in line for line in last)  # and none of minutes' worth of cones


@pytest.mark.parametrize("n", [30, 700])
def test_a_system_is_solved_to_rounding_or_is_singular(n):
    rng = np.random.default_rng(n)
    system = sparse.random(n, n, 3 / n, rng=rng, format="csc") + sparse.identity(n, format="csc")
    answer = rng.normal(size=n)
    found = solve_system(system, system @ answer)
    np.testing.assert_allclose(system @ found, system @ answer, rtol=0, atol=1e-12)
    singular = sparse.diags(np.arange(n, dtype=np.float64), format="csc")
    assert solve_system(singular, answer) is None
