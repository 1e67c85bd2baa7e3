"""The least expected cost, against linear programs of every pair; and what files prove of it."""

from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify import check_bytes
from labeldp_verify.analysis import LOSSES, CostMatrix, Costs, analyse, exp_lower, matrix
from labeldp_verify.analysis.lower_bound import Duals
from labeldp_verify.forms.exact_numbers import ExactNumbers
from scipy.optimize import linprog

from labeldp_compile.mechanisms import least_cost as module
from labeldp_compile.observer import QUIET
from labeldp_compile.solve.optimal_unbiased import optimum
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec


def text_of(folder, costs, weights, epsilon, mechanism="least_cost"):
    """A spec, whose costs [k, k] are in a file in the folder."""
    names = [f"c{i}" for i in range(len(costs))]
    lines = ([name, *map(str, row)] for name, row in zip(names, costs, strict=True))
    (folder / "costs.csv").write_text("\n".join(map(",".join, [["", *names], *lines])))
    changes = {"loss": "{matrix: costs.csv}", "mechanism": mechanism, "epsilon": epsilon}
    prior = {"kind": "public", "weights": weights}
    return spec(values=names, **changes, prior=prior)


def costs_of(generator, k):
    """Random costs of which the diagonal is not always the least."""
    return generator.integers(0, 1000, (k, k)) / 8


def least_cost(costs, weights, epsilon):
    """By the program with a row for each output and each pair of labels."""
    k, rows = len(costs), []
    for o in range(k):
        for one, other in permutations(range(k), 2):
            row = np.zeros((k, k))
            row[one, o], row[other, o] = 1, -exp(epsilon)
            rows.append(row.ravel())
    prior = np.array(weights) / sum(weights)
    sums = np.kron(np.eye(k), np.ones(k))
    objective = (prior[:, None] * costs).ravel()
    return linprog(objective, rows, np.zeros(len(rows)), sums, np.ones(k), method="highs").fun


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 7])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_no_randomizer_costs_less(tmp_path, k, epsilon):
    generator = np.random.default_rng([k, round(10 * epsilon)])
    for _ in range(4):
        costs, weights = costs_of(generator, k), generator.integers(0, 9, k).tolist()
        weights[0] += 1
        made = compile_text(text_of(tmp_path, costs, weights, epsilon), directory=tmp_path)
        use, rows = made.certificate.utility, matrix(made.randomizer, range(k))
        outputs = [int(value[1:]) for value in made.randomizer.values]
        prior = np.array(weights) / sum(weights)
        expected = prior @ (rows * costs[:, outputs]).sum(axis=1)
        assert use.noisy_label_loss == pytest.approx(expected, rel=1e-12)
        least = least_cost(costs, weights, epsilon)
        assert use.noisy_label_loss == pytest.approx(least, rel=1e-9, abs=1e-9)
        assert use.loss_lower_bound == pytest.approx(least, rel=1e-9, abs=1e-9)
        assert not use.loss_lower_bound or use.certified_gap < 1e-6


@pytest.mark.parametrize("epsilon", [0.3, 3])
@pytest.mark.parametrize("kind", ["random", "ordered"])
def test_outputs_that_are_added_one_by_one_cost_as_little_as_all_at_once(kind, epsilon):
    """60 labels: the loss of all outputs in one program, within a bound that is proved."""
    generator, k = np.random.default_rng(7), 60
    steps = np.abs(np.arange(k)[:, None] - np.arange(k)) ** 1.5
    costs = generator.random((k, k)) if kind == "random" else steps
    prior = generator.dirichlet(np.full(k, 0.5))
    minima, duals = module._solved(costs, prior, epsilon, QUIET)
    assert 0 < np.count_nonzero(minima) < k
    least = optimum.solve_lp_costs(costs, prior, epsilon).loss
    assert duals.sum() == pytest.approx(least, rel=1e-6)


def brute_force(randomizer):
    """The largest ratio of two probabilities of an output, as a fraction."""
    columns = zip(*randomizer.counts, strict=True)
    return max(Fraction(max(column), min(column)) for column in columns)


@pytest.mark.parametrize("cells", [1, 40_000])
def test_many_labels_are_private_and_have_a_bound(tmp_path, monkeypatch, cells):
    """Also where a program would be too large, so that it stops early: the bound is less tight."""
    monkeypatch.setattr(module, "_MOST_CELLS", cells)
    costs, weights = costs_of(np.random.default_rng(7), 40), [*range(40)]
    made = compile_text(text_of(tmp_path, costs, weights, 1), directory=tmp_path)
    assert brute_force(made.randomizer) <= exp_lower(Fraction(1))
    use = made.certificate.utility
    least = optimum.solve_lp_costs(costs, np.array(weights) / sum(weights), 1).loss
    assert use.loss_lower_bound <= least * (1 + 1e-9) and use.noisy_label_loss >= least * (1 - 1e-9)
    assert (use.certified_gap < 1e-6) == (cells > 1)
    assert check_bytes(made.model).ok


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", "power"])
def test_300_labels(tmp_path, kind):
    i = np.arange(300)
    costs = np.round(np.abs(i[:, None] - i) ** 1.5, 3)
    if kind == "tree":
        costs = sum(2 * (i[:, None] // size != i // size) for size in (1, 6, 30))
    weights = np.random.default_rng(5).integers(1, 99, 300).tolist()
    made = compile_text(text_of(tmp_path, costs, weights, 2), directory=tmp_path)
    assert brute_force(made.randomizer) <= exp_lower(Fraction(2))
    assert made.certificate.utility.certified_gap < 1e-6 and check_bytes(made.model).ok


@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", 20, 30, 60])
def test_very_small_and_very_large_epsilon(tmp_path, epsilon):
    costs, weights = costs_of(np.random.default_rng(8), 6), [1, 0, 10**9, 3, 3, 1]
    made = compile_text(text_of(tmp_path, costs, weights, epsilon), directory=tmp_path)
    gap = made.certificate.utility.certified_gap
    assert gap < 1e-6 if float(epsilon) <= 20 else gap is None or gap >= 0


@pytest.mark.parametrize("bits", [4, 9, 20])
def test_short_words_are_as_private(tmp_path, bits):
    costs = costs_of(np.random.default_rng(9), 6)
    text = text_of(tmp_path, costs, [1] * 6, 1.5)
    made = compile_text(text, word_bits=bits, directory=tmp_path)
    assert analyse(made.randomizer).worst_ratio() <= exp_lower(Fraction(3, 2))
    assert made.randomizer.word_bits == bits


@pytest.mark.parametrize(
    "minima", [None, np.zeros(5), np.full(5, 0.9), np.array([1e-30, 1, 0, 0, 0])]
)
def test_a_wrong_solution_is_as_private_and_claims_no_more(tmp_path, monkeypatch, minima):
    def wrong(costs, prior, epsilon, observer, more):
        if minima is None:
            raise ValueError("HiGHS gives up")
        return optimum.GridSolution(np.zeros((5, 5)), minima, np.full(5, 1e3), 0.0)

    monkeypatch.setattr(optimum, "solve_lp_costs", wrong)
    text = text_of(tmp_path, costs_of(np.random.default_rng(3), 5), [1] * 5, 1)
    made = compile_text(text, directory=tmp_path)
    assert made.certificate.optimality is None and check_bytes(made.model).ok


@settings(deadline=None, derandomize=True, max_examples=200)
@given(data=st.data())
def test_f_is_proved_exactly_where_it_is_not_negative(data):
    k = data.draw(st.integers(2, 5))
    whole = st.integers(0, 9)
    rows = [data.draw(st.lists(whole, min_size=k, max_size=k)) for _ in range(k)]
    rows[0][0] = rows[1][0] + 1
    loss = CostMatrix(Costs(list(range(k)), 1, rows))
    w = data.draw(st.lists(whole, min_size=k, max_size=k).filter(any))
    alpha = [Fraction(data.draw(st.integers(-9, 30)), 20) for _ in range(k)]
    growth = Fraction(data.draw(st.integers(0, 40)), 7)

    def f(o):
        h = [Fraction(w[y] * rows[y][o], sum(w)) - alpha[y] for y in range(k)]
        return sum(h) + growth * sum(min(part, 0) for part in h)

    numbers = map(ExactNumbers.of, ([0] * k, alpha, [0] * k))
    y, level, slopes = numbers
    holds = LOSSES[loss].dual(Duals(y, w, level, slopes, growth))
    assert holds == (min(map(f, range(k))) >= 0)


@pytest.mark.parametrize("mechanism", ["exponential", "rr_with_prior", "randomized_response"])
def test_others_state_their_cost_and_no_bound(tmp_path, mechanism):
    costs = costs_of(np.random.default_rng(5), 6)
    least, other = (
        compile_text(text_of(tmp_path, costs, [*range(6)], 1, kind), directory=tmp_path)
        for kind in ("auto", mechanism)
    )
    assert least.certificate.mechanism == "least_cost"
    assert other.certificate.optimality is None
    bound = least.certificate.utility.noisy_label_loss
    assert other.certificate.utility.noisy_label_loss >= bound * (1 - 1e-12)


def test_integers_are_labels_like_others(tmp_path):
    (tmp_path / "costs.csv").write_text("stars,3,2,1\n1,5,1,0\n2,1,0,2\n3,0,1,3\n")
    chosen = {"loss": "{matrix: costs.csv}", "mechanism": "auto", "epsilon": 1}
    domain = {"kind": "integer", "min": 1, "max": 3}
    text = spec(weights=[1, 2, 7], domain=domain, **chosen)
    made = compile_text(text, directory=tmp_path)
    use, rows = made.certificate.utility, matrix(made.randomizer, range(3))
    costs = np.array([[0, 1, 5], [2, 0, 1], [3, 1, 0]])[
        :, [int(v) - 1 for v in made.randomizer.values]
    ]
    assert use.noisy_label_loss == pytest.approx(
        np.array([1, 2, 7]) / 10 @ (rows * costs).sum(axis=1)
    )
    assert use.certified_gap < 1e-9
