import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeldp_compile.solve.optimal_unbiased.dual import price, prove
from labeldp_compile.solve.optimal_unbiased.optimum import solve_optimal_unbiased
from labeldp_compile.solve.optimal_unbiased.problem import (
    BiasBudget,
    Program,
    extra_line,
    place_windows,
    placed_loss,
    reference_losses,
)

PRIORS = ("uniform", "geometric", "spiked", "sparse")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def make_prior(kind, k):
    rng = np.random.default_rng(7)
    p = {
        "uniform": np.ones(k),
        "geometric": 0.9 ** np.arange(k),
        "spiked": np.r_[0.5, np.full(max(k - 2, 0), 1 / 6 / max(k - 2, 1)), 1 / 3],
        "sparse": rng.exponential(size=k) * (rng.random(k) < 0.25),
    }[kind]
    p[k // 3] += 0.01
    return p / p.sum()


def table_of(s, k, epsilon):
    """P[i | y] of the window form, for checks independent of the solver's own sums."""
    extra = s.weights * np.expm1(epsilon)
    ends = np.concatenate([[0.0], np.cumsum(extra)])
    window = 1.0 - s.weights.sum()
    low = np.maximum(ends[:-1], s.starts[:, None])
    high = np.minimum(ends[1:], s.starts[:, None] + window)
    return s.weights + np.maximum(high - low, 0.0)


def check(s, labels, prior, epsilon, gap):
    """Check everything that must hold of any unbiased solution."""
    k = labels.size
    spread = np.abs(s.values).max() + np.abs(labels).max()
    table = table_of(s, k, epsilon)
    assert (np.diff(s.values) > 0).all()
    assert s.values.size <= 2 * k  # Theorem 6
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(table @ s.values, labels, rtol=0, atol=1e-10 * spread)
    assert (table.max(axis=0) <= np.exp(epsilon) * table.min(axis=0) * (1 + 1e-9)).all()
    loss = 0.5 * prior @ (table * (s.values - labels[:, None]) ** 2).sum(axis=1)
    assert s.loss == pytest.approx(loss, rel=1e-9)
    assert s.lower_bound <= s.loss * (1 + 1e-11)
    assert s.gap <= gap
    low = np.exp(-epsilon)
    line = extra_line(s.values, s.weights / low, low)
    starts = place_windows(line, labels)
    assert np.abs(line.means(starts) - labels).max() <= 1e-9 * np.abs(s.values).max()
    assert placed_loss(line, starts, labels, prior, low) == pytest.approx(s.loss, rel=1e-9)


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_certified_optimum(kind, epsilon):
    labels, prior = np.arange(52.0), make_prior(kind, 52)
    s = solve_optimal_unbiased(labels, prior, epsilon)
    check(s, labels, prior, epsilon, 1e-8)


@pytest.mark.parametrize("epsilon", [0.01, 0.03, 12.0, 16.0, 20.0])
@pytest.mark.parametrize("kind", PRIORS)
def test_extreme_epsilon(kind, epsilon):
    labels, prior = np.arange(30.0), make_prior(kind, 30)
    check(solve_optimal_unbiased(labels, prior, epsilon), labels, prior, epsilon, 1e-7)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_random_problems(data):
    k = data.draw(st.integers(2, 9))
    steps = data.draw(st.lists(st.sampled_from([0.1, 0.5, 1.0, 3.0, 20.0]), min_size=k, max_size=k))
    mass = data.draw(st.lists(st.sampled_from([0.0, 1e-4, 0.1, 1.0, 5.0]), min_size=k, max_size=k))
    epsilon = data.draw(st.sampled_from([0.05, 0.3, 1.0, 2.5, 5.0, 9.0]))
    if sum(mass) == 0.0:
        mass[0] = 1.0
    labels = np.cumsum(steps) - 7.0
    prior = np.array(mass) / sum(mass)
    s = solve_optimal_unbiased(labels, prior, epsilon)
    check(s, labels, prior, epsilon, 1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(0.05, 6.0))
def test_any_dual_point_bounds_any_mechanism(seed, epsilon):
    """The bound holds for whatever multipliers, against mechanisms that are not optimal."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    labels = np.cumsum(rng.random(k) + 0.05)
    labels -= labels.mean()
    prior = rng.dirichlet(np.ones(k))
    problem = Program(labels, prior, float(np.exp(-epsilon)), BiasBudget())
    bound = prove(problem, rng.normal(size=k) * 0.1, rng.normal(size=k) * 0.1)
    assert bound.value <= min(reference_losses(problem)) * (1 + 1e-9)
    assert price(labels, prior, problem.low, bound.alpha, bound.beta).worst >= -1e-9


def problem_of(kind, k, epsilon):
    labels = np.linspace(-1.0, 1.0, k)
    raw = Program(labels, make_prior(kind, k), float(np.exp(-epsilon)), BiasBudget())
    return raw.scaled(float(np.sqrt(2.0 * min(reference_losses(raw)))))


def test_labels_with_equal_rows_have_a_close_bound():
    labels, rough = np.arange(151.0), np.random.default_rng(1).gamma(0.3, size=151)
    for prior in ((1 + labels) ** -1.5, rough):
        found = solve_optimal_unbiased(labels, prior, 4.0, bias=BiasBudget(most=30.0))
        assert 0 <= found.gap <= 1e-4


@pytest.mark.parametrize("kind", ["uniform", "spiked"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bias_budget_between_unbiased_and_free(kind, epsilon):
    labels, prior = np.arange(20.0), make_prior(kind, 20)
    unbiased = solve_optimal_unbiased(labels, prior, epsilon)
    previous = unbiased.loss
    for most in (0.1, 0.5, 2.0):
        s = solve_optimal_unbiased(labels, prior, epsilon, bias=BiasBudget(most=most))
        assert np.abs(s.means - labels).max() <= most * (1 + 1e-9)
        assert s.lower_bound <= s.objective * (1 + 1e-9)
        assert s.gap <= 1e-5
        assert s.loss <= previous * (1 + 1e-9)
        previous = s.loss
    previous = unbiased.loss
    for penalty in (1e4, 30.0, 3.0):
        s = solve_optimal_unbiased(labels, prior, epsilon, bias=BiasBudget(penalty=penalty))
        bias = penalty * prior @ (s.means - labels) ** 2
        assert s.objective == pytest.approx(s.loss + bias, rel=1e-9)
        assert s.lower_bound <= s.objective * (1 + 1e-9)
        assert s.gap <= 1e-5
        assert s.objective <= previous * (1 + 1e-9)
        previous = s.objective
    zero = solve_optimal_unbiased(labels, prior, epsilon, bias=BiasBudget(most=0.0))
    assert zero.loss == pytest.approx(unbiased.loss, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("kind", ["uniform", "geometric", "spiked"])
def test_free_bias_is_randomized_response_on_bins(kind, epsilon):
    """With λ = 0 the optimum is RR-on-Bins: compare with all partitions into intervals."""
    k = 7
    y, p = np.arange(float(k)), make_prior(kind, k)
    best = np.inf
    for cuts in range(2 ** (k - 1)):
        bins = np.concatenate([[0], np.cumsum([(cuts >> i) & 1 for i in range(k - 1)])])
        count = int(bins[-1]) + 1
        low = 1.0 / (np.exp(epsilon) + count - 1)
        loss = 0.0
        for j in range(count):
            weight = p * np.where(bins == j, np.exp(epsilon), 1.0) * low
            value = weight @ y / weight.sum()
            loss += 0.5 * weight @ (value - y) ** 2
        best = min(best, loss)
    s = solve_optimal_unbiased(y, p, epsilon, bias=BiasBudget(penalty=0.0))
    assert s.loss == pytest.approx(best, rel=1e-7)
    assert s.lower_bound <= best * (1 + 1e-9)
