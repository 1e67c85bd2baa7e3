"""Losses with parameters: RR-on-Bins against linear programs, and the bounds that files prove."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify import check_bytes
from labeldp_verify.analysis import LOSSES, analyse, expected_loss, matrix
from labeldp_verify.analysis.lower_bound import Duals
from labeldp_verify.forms.exact_numbers import ExactNumbers
from scipy.optimize import linprog

from labeldp_compile.errors import SpecError
from labeldp_compile.solve.losses import LOSSES as RECORDS
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

NAMES = {
    "{quantile: 0.9}": "quantile(9/10)",
    "{under: 3, over: 0.5}": "under_over(3,1/2)",
    "{huber: 1.5}": "huber(3/2)",
    "{power: 1.5}": "power(3/2)",
    "{power: 3}": "power(3)",
    "{power: 1.1}": "power(11/10)",
    "poisson": "poisson",
}
WEIGHTS = [3, 0, 8, 1, 4, 4, 1, 9, 2, 2]


def exact(name, v, y):
    """ℓ(v, y) by its definition."""
    d = abs(v - y)
    return {
        "quantile(9/10)": lambda: 0.9 * (y - v) if v < y else 0.1 * (v - y),
        "under_over(3,1/2)": lambda: 3 * (y - v) if v < y else (v - y) / 2,
        "huber(3/2)": lambda: d * d / 2 if d <= 1.5 else 1.5 * (d - 0.75),
        "power(3/2)": lambda: d**1.5 / 1.5,
        "power(3)": lambda: d**3 / 3,
        "power(11/10)": lambda: d**1.1 / 1.1,
        "poisson": lambda: v - (y * np.log(v) if y else 0),
    }[name]()


def least_loss(name, labels, prior, epsilon, outputs):
    """The least loss of all ε-DP randomizers with these outputs, by HiGHS."""
    k, m = len(labels), len(outputs)
    costs = [[p * exact(name, v, y) for v in outputs] for y, p in zip(labels, prior, strict=True)]
    each = np.eye(k * m)
    least = np.tile(np.eye(m), (k, 1))
    rows = np.vstack([np.hstack([-each, least]), np.hstack([each, -exp(epsilon) * least])])
    sums = np.hstack([np.kron(np.eye(k), np.ones(m)), np.zeros((k, m))])
    objective = np.append(np.ravel(costs), np.zeros(m))
    found = linprog(objective, rows, np.zeros(len(rows)), sums, np.ones(k), method="highs")
    return found.fun


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("name", NAMES.values())
def test_no_randomizer_on_a_fine_grid_has_a_smaller_loss(name, epsilon):
    labels = np.array([1.0, 2.0, 2.5, 4.0, 7.0, 8.0])
    prior = np.array([3, 1, 4, 1, 5, 2]) / 16
    solution = solve_rr_on_bins(labels, prior, epsilon, name)
    outputs = np.union1d(np.linspace(1, 8, 57), solution.values)
    assert least_loss(name, labels, prior, epsilon, outputs) == pytest.approx(solution.loss, 1e-7)


@pytest.mark.parametrize("mechanism", ["rr_on_bins", "exponential"])
@pytest.mark.parametrize(("stated", "name"), NAMES.items())
def test_a_file_states_the_loss_of_its_matrix_and_proves_that_none_is_smaller(
    stated, name, mechanism
):
    domain = "{kind: integer, min: 1, max: 10}"
    chosen = {"loss": stated, "mechanism": mechanism, "domain": domain, "epsilon": 2}
    compiled = compile_text(spec(weights=WEIGHTS, **chosen))
    use, randomizer = compiled.certificate.utility, compiled.randomizer
    rows, total = matrix(randomizer, range(10)), sum(WEIGHTS)
    expected = sum(
        weight / total * chance * exact(name, value, y)
        for y, weight, row in zip(range(1, 11), WEIGHTS, rows, strict=True)
        for value, chance in zip(randomizer.values, row, strict=True)
    )
    assert (use.loss, use.noisy_label_loss) == (name, pytest.approx(expected, rel=1e-12))
    if mechanism == "rr_on_bins":
        least = use.loss_lower_bound
        assert least == pytest.approx(use.noisy_label_loss, rel=2e-6)
        assert use.certified_gap is None if least < 0 else use.certified_gap < 2e-6


@pytest.mark.parametrize("stated", ["{quantile: 0.9}", "{huber: 1.5}", "{power: 1.5}", "poisson"])
def test_a_bound_that_is_raised_and_a_loss_that_is_another_are_refused(stated):
    domain = "{kind: integer, min: 1, max: 10}"
    text = spec(weights=WEIGHTS, loss=stated, domain=domain, epsilon=1, mechanism="rr_on_bins")
    certificate = compile_text(text).certificate
    weights, loss = certificate.prior.weights, certificate.utility.loss
    alpha = [Fraction(number) for number in certificate.optimality.alpha]
    growth = Fraction(exp(1)) - 1

    def holds(alpha, loss=loss):
        numbers = map(ExactNumbers.of, (range(1, 11), alpha, [0] * 10))
        y, level, slopes = numbers
        return LOSSES[loss].dual(Duals(y, weights, level, slopes, growth))

    assert holds(alpha)
    more = abs(Fraction(certificate.exact.loss_lower_bound)) / 10**5
    for y in range(10):
        assert not holds([a + more * (i == y) for i, a in enumerate(alpha)])
    others = {
        "quantile(9/10)": "quantile(99/100)",
        "huber(3/2)": "huber(1)",
        "power(3/2)": "power(5/4)",
    }
    if loss in others:
        assert not holds(alpha, others[loss])
        assert any(
            "loss" in line
            for line in spec_disagreements(text.replace(stated, "{huber: 7}").encode(), certificate)
        )
    assert not any("loss" in line for line in spec_disagreements(text.encode(), certificate))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(data=st.data())
def test_f_is_proved_exactly_where_it_is_not_negative(data):
    k = data.draw(st.integers(1, 7))
    numbers = st.integers(-3, 12)
    y = np.cumsum(data.draw(st.lists(st.integers(1, 5), min_size=k, max_size=k))).tolist()
    w = data.draw(st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any))
    alpha = [Fraction(data.draw(numbers), 50) for _ in range(k)]
    growth = Fraction(data.draw(st.integers(0, 40)), 7)
    name = data.draw(st.sampled_from(["quantile(9/10)", "under_over(3,1/2)", "huber(3)"]))

    def loss(v, label):
        d = v - label
        if name.startswith("huber"):
            return d * d / 2 if abs(d) <= 3 else 3 * abs(d) - Fraction(9, 2)
        under, over = (3, Fraction(1, 2)) if name[0] == "u" else (Fraction(9, 10), Fraction(1, 10))
        return max(-under * d, over * d)

    def f(v):
        h = [
            Fraction(p, sum(w)) * loss(v, label) - a
            for p, label, a in zip(w, y, alpha, strict=True)
        ]
        return sum(h) + growth * sum(min(part, 0) for part in h)

    duals = Duals(*map(ExactNumbers.of, [y]), w, *map(ExactNumbers.of, (alpha, [0] * k)), growth)
    # Between these places F is not lower by more than the squares of their distance.
    fine = range(8 * y[0], 8 * y[-1] + 1)
    least = min(f(Fraction(v, 8)) for v in (fine if name[0] == "h" else [8 * v for v in y]))
    if name[0] != "h" or least < 0 or least > Fraction(1, 16) * (1 + growth):
        assert LOSSES[name].dual(duals) == (least >= 0)


@pytest.mark.parametrize("loss", ["{quantile: 0.25}", "{under: 5, over: 2}"])
def test_unbiased_outputs_on_a_grid_have_the_exact_loss(loss):
    mechanism = "{kind: optimal_unbiased, outputs: {grid: 9}}"
    text = spec(labels=5, loss=loss, mechanism=mechanism)
    compiled = compile_text(text)
    name, randomizer = compiled.certificate.utility.loss, compiled.randomizer
    low, high = expected_loss(analyse(randomizer), range(5), [1] * 5, name)
    rows = matrix(randomizer, range(5))
    costs = RECORDS[name].of(np.array(randomizer.values), np.arange(5.0)[:, None])
    assert low == high
    assert float(low) == pytest.approx((rows * costs).sum() / 5, rel=1e-12)


WRONG = (
    "quantile(0.9) quantile(18/20) quantile(1/1) power(2) power(1) under_over(1,1) huber(-1) "
    "huber(3/0) power(3/2,1) huber(03) huber"
)


@pytest.mark.parametrize("name", WRONG.split())
def test_a_loss_has_one_name(name):
    assert name not in LOSSES


@pytest.mark.parametrize(
    ("stated", "message"),
    {
        "{quantile: 1.5}": "quantile must be above 0 and below 1",
        "{quantile: high}": "expected a number",
        "{quantil: 0.9}": "expected one of {quantile: NUMBER}",
        "{quantile: 0.9, huber: 3}": "one loss",
        "{under: 3}": "{under: NUMBER, over: NUMBER}",
        "{under: 3, over: 0}": "above 0",
        "{power: 0.5}": "between 1 and 4",
        "{power: 1.37}": "denominator of at most 10",
        "{huber: -3}": "huber must be above 0",
        "quantile": "needs a mapping",
        "quantile(9/10)": "needs a mapping",
        "absolut": "did you mean 'absolute'?",
    }.items(),
)
def test_a_wrong_loss_is_one_error(stated, message):
    with pytest.raises(SpecError) as error:
        parse_spec(spec(loss=stated))
    assert message in str(error.value)
    assert not any("errors" in note for note in error.value.__notes__)


SAME = {"{power: 2}": "squared", "{power: 1}": "absolute", "{under: 1, over: 1}": "absolute"}


@pytest.mark.parametrize(("stated", "name"), SAME.items())
def test_a_loss_that_has_a_name_is_that_loss(stated, name):
    assert parse_spec(spec(loss=stated)).loss == name


def test_a_column_of_a_joint_label_may_have_one():
    domain = {"kind": "integer", "min": 0, "max": 2}
    label = {"domain": domain, "out_of_domain": "clamp", "nulls": {"default": 0}}
    losses = {"a": {"quantile": 0.9}, "b": {"huber": 2}}
    columns = [{"column": name, "loss": loss, **label} for name, loss in losses.items()]
    compiled = compile_text(spec(columns=columns, loss="sum", mechanism="randomized_response"))
    stated = [column.loss for column in compiled.certificate.joint.columns]
    assert stated == ["quantile(9/10)", "huber(2)"]
    assert check_bytes(compiled.model).ok
