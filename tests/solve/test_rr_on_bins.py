"""RR-on-Bins against brute force, against the LP over all mechanisms, and against itself."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.optimize import linprog, minimize_scalar
from scipy.special import kl_div

from labeldp_compile.solve import rr_on_bins
from labeldp_compile.solve.bin_costs import bin_costs
from labeldp_compile.solve.least_weight_subsequence import Cuts, Runs
from labeldp_compile.solve.range_moments import RangeMoments
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins

LOSSES = ("squared", "absolute", "poisson")
repeatable = settings(deadline=None, derandomize=True)


def squared(v, y):
    return 0.5 * (v - y) ** 2


def huber(v, y):
    gap = np.abs(v - y)
    return np.where(gap <= 1.0, 0.5 * gap**2, gap - 0.5)


def from_zero(loss, v, y):
    """The loss less its value at v = y, which no mechanism can avoid."""
    if callable(loss):
        return loss(v, y) - loss(y, y)
    if loss == "poisson":
        return kl_div(y, v)
    return squared(v, y) if loss == "squared" else np.abs(v - y)


def unavoidable(loss, labels, prior):
    if loss != "poisson":
        return 0.0
    positive = labels > 0
    y = labels[positive]
    return float(prior[positive] @ (y - y * np.log(y)) / prior.sum())


def loss_of(starts, values, labels, prior, epsilon, loss):
    """Loss from zero of the mechanism, term by term from its definition."""
    bins = np.searchsorted(starts, np.arange(labels.size), side="right") - 1
    chance = np.where(bins[:, None] == np.arange(values.size), 1.0, np.exp(-epsilon))
    chance /= 1.0 + (values.size - 1) * np.exp(-epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss_at = from_zero(loss, values[None, :], labels[:, None])
    weight = (prior / prior.sum())[:, None] * chance
    return float((weight * np.where(weight > 0, loss_at, 0.0)).sum())


def best_output(weights, labels, loss):
    if loss in ("squared", "poisson"):
        return weights @ labels / weights.sum()
    if loss == "absolute":
        return min(labels, key=lambda v: weights @ np.abs(v - labels))
    found = minimize_scalar(
        lambda v: weights @ loss(v, labels),
        bounds=(labels[0], labels[-1]),
        method="bounded",
        options={"xatol": 1e-11},
    )
    return found.x


def by_brute_force(labels, prior, epsilon, loss):
    """Least loss from zero over every partition into intervals."""
    losses = []
    for count in range(labels.size):
        for inner in combinations(range(1, labels.size), count):
            starts = np.array([0, *inner])
            inside = np.searchsorted(starts, np.arange(labels.size), side="right") - 1
            weights = prior * np.where(inside == np.arange(count + 1)[:, None], 1, np.exp(-epsilon))
            values = np.array([best_output(w, labels, loss) for w in weights])
            losses.append(loss_of(starts, values, labels, prior, epsilon, loss))
    return min(losses)


def check_solution(solution, labels, prior, epsilon, loss):
    assert solution.starts[0] == 0
    assert (np.diff(solution.starts) > 0).all()
    assert solution.starts[-1] < labels.size
    assert solution.values.shape == solution.starts.shape
    assert (np.diff(solution.values) > 0).all()
    assert labels[0] <= solution.values[0]
    assert solution.values[-1] <= labels[-1]
    honest = loss_of(solution.starts, solution.values, labels, prior, epsilon, loss)
    apart = unavoidable(loss, labels, prior)
    assert solution.loss == pytest.approx(honest + apart, rel=1e-9, abs=1e-12 * abs(apart))
    return honest


def priors(size):
    even = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    uneven = st.lists(st.floats(-9, 0).map(lambda t: 10.0**t), min_size=size, max_size=size)
    return st.one_of(even, uneven).filter(any).map(lambda p: np.array(p, dtype=float))


@st.composite
def problems(draw, most=7, epsilons=(0.01, 30.0)):
    steps = draw(st.lists(st.integers(1, 40), min_size=1, max_size=most))
    scale = draw(st.sampled_from([1.0, 0.1, 1e5]))
    labels = (np.cumsum(steps) - draw(st.sampled_from([1, steps[0]]))) * scale
    return labels, draw(priors(labels.size)), draw(st.floats(*epsilons))


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=120)
@given(problem=problems())
def test_equals_brute_force(loss, problem):
    labels, prior, epsilon = problem
    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
    honest = check_solution(solution, labels, prior, epsilon, loss)
    # The reference rounds its outputs, and kl_div cancels: that is what large ε magnifies.
    noise = {"squared": 1e-30 * labels[-1] ** 2, "absolute": 0.0, "poisson": 1e-15 * labels[-1]}
    expected = by_brute_force(labels, prior, epsilon, loss)
    assert honest == pytest.approx(expected, rel=1e-9, abs=noise[loss])


@pytest.mark.parametrize("loss", [squared, huber])
@settings(repeatable, max_examples=15)
@given(problem=problems(most=5, epsilons=(0.1, 8.0)))
def test_a_function_equals_brute_force(loss, problem):
    labels, prior, epsilon = problem
    labels = labels / (1.0 + labels[-1]) * 5.0
    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
    honest = check_solution(solution, labels, prior, epsilon, loss)
    assert honest == pytest.approx(by_brute_force(labels, prior, epsilon, loss), 1e-9, abs=1e-14)


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0, 25.0])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("squared", squared),
        ("absolute", lambda v, y: np.abs(v - y)),
        ("poisson", lambda v, y: v - y * np.log(v)),
    ],
)
def test_a_function_equals_the_named_loss(name, function, epsilon):
    labels = np.array([0.5, 1.0, 2.0, 3.5, 4.0, 7.0, 7.5, 11.0, 20.0, 21.0])
    prior = np.array([4, 1, 3, 0, 2, 2, 1, 5, 1, 0.1])
    one = solve_rr_on_bins(labels, prior, epsilon, name)
    other = solve_rr_on_bins(labels, prior, epsilon, function)
    np.testing.assert_array_equal(one.starts, other.starts)
    # At a smooth minimum the loss fixes half of the digits of the output only.
    np.testing.assert_allclose(one.values, other.values, rtol=0 if name == "absolute" else 1e-5)
    assert one.loss == pytest.approx(other.loss, rel=1e-9)


def best_of_all_mechanisms(outputs, labels, prior, epsilon, loss):
    """Least loss from zero of any ε-DP mechanism with these outputs (the LP of Theorem 8)."""
    k, m = labels.size, outputs.size
    with np.errstate(divide="ignore", invalid="ignore"):
        loss_at = from_zero(loss, outputs[None, :], labels[:, None])
    possible = np.isfinite(np.where(prior[:, None] > 0, loss_at, 0.0)).all(axis=0)
    loss_at, m = loss_at[:, possible], possible.sum()
    cost = (prior / prior.sum())[:, None] * np.where(prior[:, None] > 0, loss_at, 0.0)
    # Variables: M[y, v], then the floor t[v] with t <= M <= e^ε t.
    each, floor = np.eye(k * m), np.tile(np.eye(m), (k, 1))
    scale = cost.max()
    found = linprog(
        np.append(cost.ravel() / scale, np.zeros(m)),
        A_ub=np.block([[-each, floor], [each, -np.exp(epsilon) * floor]]),
        b_ub=np.zeros(2 * k * m),
        A_eq=np.hstack([np.kron(np.eye(k), np.ones(m)), np.zeros((k, m))]),
        b_eq=np.ones(k),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return found.fun * scale


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=40)
@given(problem=problems(most=6, epsilons=(0.1, 4.0)), data=st.data())
def test_no_mechanism_is_better(loss, problem, data):
    labels, _, epsilon = problem
    prior = np.array(data.draw(st.lists(st.integers(1, 9), min_size=labels.size, max_size=99)))
    prior = prior[: labels.size].astype(float)
    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
    honest = check_solution(solution, labels, prior, epsilon, loss)
    if labels.size == 1:
        assert honest == 0.0
        return
    grid = np.linspace(labels[0], labels[-1], 9)
    outputs = np.unique(np.concatenate([solution.values, labels, grid]))
    best = best_of_all_mechanisms(outputs, labels, prior, epsilon, loss)
    assert best == pytest.approx(honest, rel=1e-9)
    if solution.values.size > 1 and loss != "absolute":
        others = np.setdiff1d(outputs, solution.values)
        worse = best_of_all_mechanisms(others, labels, prior, epsilon, loss)
        assert worse >= honest * (1 - 1e-9)


def test_example_of_the_paper():
    solution = solve_rr_on_bins(
        np.array([0.0, 1.0, 2.0]), np.array([0.6, 0.25, 0.15]), 0.5, "squared"
    )
    np.testing.assert_array_equal(solution.starts, [0, 1])
    np.testing.assert_allclose(solution.values, [0.396, 0.720], atol=5e-4)


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


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0, 11.0, 30.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", ["noisy", "sparse", "tail"])
def test_pruning_loses_nothing(monkeypatch, shape, loss, epsilon):
    labels, prior = many_labels(shape, 1200)
    monkeypatch.setattr(rr_on_bins, "_DIRECT", 10**9)
    full = solve_rr_on_bins(labels, prior, epsilon, loss)
    monkeypatch.setattr(rr_on_bins, "_DIRECT", 40)
    pruned = solve_rr_on_bins(labels, prior, epsilon, loss)
    honest = check_solution(pruned, labels, prior, epsilon, loss)
    expected = loss_of(full.starts, full.values, labels, prior, epsilon, loss)
    assert honest == pytest.approx(expected, rel=1e-11)
    assert pruned.starts.size == full.starts.size


def test_pruning_at_two_thousand_labels(monkeypatch):
    labels, prior = many_labels("noisy", 2000)
    pruned = solve_rr_on_bins(labels, prior, 4.0, "squared")
    monkeypatch.setattr(rr_on_bins, "_DIRECT", 10**9)
    full = solve_rr_on_bins(labels, prior, 4.0, "squared")
    np.testing.assert_array_equal(pruned.starts, full.starts)
    assert pruned.loss == pytest.approx(full.loss, rel=1e-12)


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
        runs = Runs(cuts, lambda start, stop: table[start, stop])
        assert runs.shortest(penalty).weight[-1] <= least[-1] * (1 + 1e-12)
        cuts = runs.narrow(penalty, least[-1] * (1 + 1e-12))
    paths = Runs(cuts, lambda start, stop: table[start, stop]).shortest(penalty)
    path = cuts.first[paths.best()]
    assert (path[0], path[-1]) == (0, size)
    weight = table[path[:-1], path[1:]].sum() + penalty * (path.size - 1)
    assert weight == pytest.approx(least[-1], rel=1e-12)
    assert paths.weight[-1] == pytest.approx(least[-1], rel=1e-12)


@settings(repeatable, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-6, 1e-12]))
def test_moments_of_runs_do_not_cancel(size, seed, closeness):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(size) < 0.5, 1.0, 2.0) + closeness * np.arange(size)
    weights = 10.0 ** rng.uniform(-8, 0, size)
    moments = RangeMoments(labels, weights, squared)
    first, stop = np.triu_indices(size)
    stop = stop + 1
    left, right = moments.halves(first, stop)
    mass = left.mass + right.mass
    mean = (left.mass * left.mean + right.mass * right.mean) / mass
    spread = left.spread + right.spread
    spread += left.mass * squared(left.mean, mean) + right.mass * squared(right.mean, mean)
    inside = (np.arange(size) >= first[:, None]) & (np.arange(size) < stop[:, None])
    w = weights * inside
    centre = (w @ labels) / w.sum(axis=1)
    expected = (w * squared(labels, centre[:, None])).sum(axis=1)
    np.testing.assert_allclose(mass, w.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(mean, centre, rtol=1e-13)
    # Neighbours differ by `closeness`, and a mean has an error of 1e-16 or so.
    tolerance = 1e-12 + 1e-14 / closeness
    np.testing.assert_allclose(spread / mass, expected / mass, rtol=tolerance, atol=1e-30 * size**2)


def exact_cost(prior, inside, epsilon, labels, loss):
    """Cost of one bin from zero and the best output, in 50 digits."""
    with mp.workdps(50):
        b = mp.exp(-mp.mpf(epsilon))
        total = mp.fsum(map(mp.mpf, prior))
        weights = [mp.mpf(p) / total * (1 if i else b) for p, i in zip(prior, inside, strict=True)]
        y = [mp.mpf(label) for label in labels]

        def cost(v):
            terms = {
                "squared": lambda y: (v - y) ** 2 / 2,
                "absolute": lambda y: abs(v - y),
                "poisson": lambda y: v - y + (y * mp.log(y / v) if y else 0),
            }
            return mp.fdot(weights, map(terms[loss], y))

        mean = mp.fdot(weights, y) / mp.fsum(weights)
        best = min(y, key=cost) if loss == "absolute" else mean
        return cost(best), best


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 3.0, 15.0, 28.0])
@pytest.mark.parametrize(
    ("labels", "prior"),
    [
        ([0.0, 1.0, 2.0, 5.0, 9.0, 9.5, 20.0], [3, 1, 4, 1, 5, 9, 2]),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 60, 1, 1, 1, 1]),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 1, 1, 60, 1]),
        ([100.0, 100.001, 100.002, 100.003], [1, 2, 1, 3]),
        ([1.0, 1.1, 1.2, 7.0, 400.0], [1.0, 1e-3, 1e-6, 1e-9, 1e-12]),
    ],
)
def test_costs_by_definition(labels, prior, epsilon, loss):
    labels, prior = np.array(labels), np.array(prior) / np.sum(prior)
    costs = bin_costs(loss, labels, prior, epsilon)
    first, stop = np.triu_indices(labels.size)
    got = costs.excess(first, stop + 1) + np.exp(-epsilon) * costs.base
    values = costs.values(first, stop + 1)
    for at, (r, i) in enumerate(zip(first, stop, strict=True)):
        inside = [r <= j <= i for j in range(labels.size)]
        cost, value = exact_cost(prior, inside, epsilon, labels, loss)
        assert got[at] * costs.unit == pytest.approx(float(cost), rel=1e-9, abs=0)
        assert values[at] == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=40)
@given(problem=problems(most=8))
def test_costs_rise_with_the_bin(loss, problem):
    labels, prior, epsilon = problem
    labels, prior = labels[prior > 0], prior[prior > 0] / prior.sum()
    costs = bin_costs(loss, labels, prior, epsilon)
    first, stop = np.triu_indices(labels.size)
    excess = np.full((labels.size, labels.size + 1), np.nan)
    excess[first, stop + 1] = costs.excess(first, stop + 1)
    assert (excess[first, stop + 1] >= 0).all()
    slack = 1e-12 * excess[0, -1] + 1e-28
    for r, i in combinations(range(labels.size + 1), 2):
        assert i == labels.size or excess[r, i] <= excess[r, i + 1] + slack
        assert r == 0 or excess[r, i] <= excess[r - 1, i] + slack


@pytest.mark.parametrize("loss", LOSSES)
def test_large_epsilon_gives_every_label_its_bin(loss):
    rng = np.random.default_rng(3)
    prior = rng.exponential(size=30) * (rng.random(30) < 0.7)
    labels = np.arange(30) ** 1.5
    solution = solve_rr_on_bins(labels, prior, 30.0, loss)
    np.testing.assert_allclose(solution.values, labels[prior > 0], atol=1e-6)
    check_solution(solution, labels, prior, 30.0, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [30, 1000])
def test_tiny_epsilon_gives_few_bins(loss, size):
    labels, prior = np.arange(size) * 1.0, np.random.default_rng(3).exponential(size=size)
    solution = solve_rr_on_bins(labels, prior, 0.01, loss)
    assert solution.starts.size <= 2
    constant = solve_rr_on_bins(labels, prior, 0.0, loss)
    assert constant.starts.size == 1
    apart = unavoidable(loss, labels, prior)
    # Between the loss of a constant and e^−ε of it, as for any mechanism.
    assert np.exp(-0.01) < (solution.loss - apart) / (constant.loss - apart) <= 1.0


def test_loss_falls_with_epsilon():
    labels, prior = many_labels("noisy", 100)
    for loss in LOSSES:
        losses = [solve_rr_on_bins(labels, prior, e, loss).loss for e in (0, 0.1, 1, 3, 9, 30, 900)]
        assert (np.diff(losses) <= 0).all()
        assert losses[-1] == pytest.approx(unavoidable(loss, labels, prior), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=40)
@given(problem=problems(), data=st.data())
def test_labels_of_no_prior_change_nothing(loss, problem, data):
    labels, prior, epsilon = problem
    extra = data.draw(st.lists(st.floats(0.01, 41), min_size=1, max_size=6))
    both = np.union1d(labels, labels[0] + np.array(extra) * np.ptp(labels) / 40)
    widened = np.zeros(both.size)
    widened[np.searchsorted(both, labels)] = prior
    before = solve_rr_on_bins(labels, prior, epsilon, loss)
    after = solve_rr_on_bins(both, widened, epsilon, loss)
    assert after.loss == before.loss
    np.testing.assert_array_equal(after.values, before.values)
    check_solution(after, both, widened, epsilon, loss)
    bins = np.searchsorted(after.starts, np.arange(both.size), side="right") - 1
    for at in np.flatnonzero(widened == 0):
        known = bins[np.flatnonzero(widened)]
        lower = known[np.flatnonzero(widened) < at][-1:]
        upper = known[np.flatnonzero(widened) > at][:1]
        nearest = np.unique(np.concatenate([lower, upper]))
        with np.errstate(divide="ignore"):
            losses = from_zero(loss, after.values[nearest], both[at])
        assert bins[at] in nearest
        assert from_zero(loss, after.values[bins[at]], both[at]) <= losses.min() + 1e-9 * both[-1]


@pytest.mark.parametrize("loss", [*LOSSES, huber])
@pytest.mark.parametrize("prior", [[3.0], [0.0, 2.0, 0.0, 0.0]])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_one_label_with_prior(loss, prior, value):
    labels = value + np.arange(len(prior)) * 2.0
    expected = labels[np.argmax(prior)]
    for epsilon in (0.0, 0.01, 1.0, 30.0):
        solution = solve_rr_on_bins(labels, np.array(prior), epsilon, loss)
        np.testing.assert_array_equal(solution.starts, [0])
        np.testing.assert_allclose(solution.values, [expected], rtol=1e-15)
        poisson = expected - expected * np.log(expected) if expected else 0.0
        assert solution.loss == pytest.approx(poisson if loss == "poisson" else 0.0, abs=1e-15)


def test_all_bins_tie():
    labels = np.arange(40) * 1.0
    prior = np.full(40, 1e-3)
    prior[13] = 1.0
    # The median stays where most of the mass is, whatever the bins.
    solution = solve_rr_on_bins(labels, prior, 0.5, "absolute")
    np.testing.assert_array_equal(solution.starts, [0])
    np.testing.assert_array_equal(solution.values, [13.0])
    assert solution.iterations == 0


@pytest.mark.parametrize(("prior", "chance", "values"), [([3, 1], 3, [0]), ([10, 9, 6], 4, [0, 1])])
def test_ties_go_to_fewer_bins(prior, chance, values):
    # One bin more has the same loss: 1/4 with two labels, 11/25 with three.
    labels = np.arange(len(prior)) * 1.0
    for loss in ("absolute", lambda v, y: np.abs(v - y)):
        solution = solve_rr_on_bins(labels, np.array(prior), np.log(chance), loss)
        np.testing.assert_array_equal(solution.values, values)
        assert solution.loss == pytest.approx({2: 1 / 4, 3: 11 / 25}[len(prior)], rel=1e-12)


def test_bins_of_equal_output_are_merged():
    labels = np.arange(9) * 1.0
    costs = bin_costs("absolute", labels, np.full(9, 1 / 9), 1.0)
    cuts, values = rr_on_bins._increasing(costs, np.arange(10))
    assert 1 < values.size < 9
    assert (np.diff(values) > 0).all()
    assert cuts[0] == 0
    assert cuts[-1] == 9
    np.testing.assert_array_equal(values, costs.values(cuts[:-1], cuts[1:]))


@settings(repeatable, max_examples=40)
@given(problem=problems(), scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_squared_loss_scales_and_shifts(problem, scale, shift):
    labels, prior, epsilon = problem
    labels = labels / max(labels[-1], 1.0) * 10.0
    one = solve_rr_on_bins(labels, prior, epsilon, "squared")
    other = solve_rr_on_bins(scale * labels + shift, prior, epsilon, "squared")
    assert other.loss == pytest.approx(scale**2 * one.loss, rel=1e-7)
    if one.starts.size == other.starts.size:
        expected = scale * one.values + shift
        np.testing.assert_allclose(other.values, expected, rtol=1e-9, atol=1e-9 * (scale + 1e3))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@settings(repeatable, max_examples=40)
@given(problem=problems())
def test_mirrored_labels_have_the_same_loss(loss, problem):
    labels, prior, epsilon = problem
    one = solve_rr_on_bins(labels, prior, epsilon, loss)
    other = solve_rr_on_bins(-labels[::-1], prior[::-1], epsilon, loss)
    assert other.loss == pytest.approx(one.loss, rel=1e-9)


@pytest.mark.parametrize("prior", [[1e308] * 3, [5e-324] * 3, [1e-300, 1.0, 1e-300]])
def test_extreme_priors(prior):
    for loss in LOSSES:
        labels, prior = np.array([0.0, 1.0, 3.0]), np.array(prior)
        for epsilon in (1e-12, 1.0, 100.0):
            solution = solve_rr_on_bins(labels, prior, epsilon, loss)
            check_solution(solution, labels, prior / prior.max(), epsilon, loss)
        for epsilon in (740.0, 1e4):
            solution = solve_rr_on_bins(labels, prior, epsilon, loss)
            apart = unavoidable(loss, labels, prior / prior.max())
            assert solution.loss == pytest.approx(apart, rel=1e-12, abs=1e-290)


@pytest.mark.parametrize("factor", [1e-140, 1e140])
def test_extreme_labels_and_priors(factor):
    labels, prior = np.array([1.0, 2.0, 4.0, 5.0]), np.array([1.0, 2.0, 2.0, 1.0])
    for loss, power in (("squared", 2), ("absolute", 1)):
        one = solve_rr_on_bins(labels, prior, 1.0, loss)
        other = solve_rr_on_bins(labels * factor, prior * factor, 1.0, loss)
        np.testing.assert_array_equal(one.starts, other.starts)
        assert other.loss == pytest.approx(one.loss * factor**power, rel=1e-9, abs=0)


OK = np.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("labels", "prior", "epsilon", "loss", "message"),
    [
        ([], [], 1.0, "squared", "non-empty"),
        ([[0.0, 1.0]], [[1.0, 1.0]], 1.0, "squared", "one-dimensional"),
        (OK, [1.0, 1.0], 1.0, "squared", "3 labels"),
        ([0.0, 0.0, 1.0], OK, 1.0, "squared", "strictly increasing"),
        ([0.0, np.nan, 1.0], OK, 1.0, "squared", "labels must be finite"),
        ([0.0, 1.0, 1e151], OK, 1.0, "squared", "at most 1e"),
        (OK, [1.0, -1e-9, 1.0], 1.0, "squared", "not negative"),
        (OK, [1.0, np.inf, 1.0], 1.0, "squared", "prior weights must be finite"),
        (OK, [0.0, 0.0, 0.0], 1.0, "squared", "not all zero"),
        (OK, OK, -0.1, "squared", "epsilon"),
        (OK, OK, np.nan, "squared", "epsilon"),
        (OK, OK, np.inf, "squared", "epsilon"),
        (OK, OK, 1.0, "cubic", "unknown loss 'cubic'"),
        (OK - 1, OK, 1.0, "poisson", "Poisson"),
        (OK, OK, 1.0, lambda v, y: np.abs(v - y) / 0.0 * np.ones(1), "finite"),
        (OK, OK, 1.0, lambda v, y: 1.0, "one number for each pair"),
    ],
)
def test_invalid_input_is_refused(labels, prior, epsilon, loss, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        solve_rr_on_bins(np.array(labels), np.array(prior), epsilon, loss)
