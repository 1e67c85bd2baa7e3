"""How ε is divided: by the expected loss of the whole, as a paper says, or as given."""

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.claims import parse_certificate

from labeldp_compile.errors import BudgetError
from labeldp_compile.mechanisms import BY_DEFAULT, mechanism_class
from labeldp_compile.prior.discrete_laplace import NoisyHistogram, coarse
from labeldp_compile.prior.plan import paper_split, plan_prior
from labeldp_compile.prior.priors import shrunk_weights
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.cli.test_cli import labeldp

SPEC = """version: 1
name: progress
label:
  column: target
  domain: {kind: integer, min: 0, max: 90}
loss: squared
privacy:
  epsilon: 1
  split: auto
prior:
  kind: private
  data: labels.parquet
mechanism: {kind: auto}
"""


@pytest.fixture
def place(tmp_path, inside):
    """442 labels of 0 … 90, and a spec."""
    inside(tmp_path)
    labels = np.random.default_rng(3).gamma(4, 9, 442).round().astype(int).clip(0, 90)
    pq.write_table(pa.table({"target": labels}), tmp_path / "labels.parquet")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def compiled(place, *changes):
    """The certificate, as JSON, and what compile said."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (place / "spec.yaml").write_text(text)
    result = labeldp("compile", "spec.yaml", "-o", "build", "--overwrite")
    assert result.exit_code == 0, result.output
    return json.loads((place / "build/progress.certificate.json").read_text()), result.stderr


def test_paper_is_the_root_of_labels_over_rows_and_adds_up_exactly():
    prior, label = paper_split(Fraction(1), 20190, 78)
    assert prior + label == 1
    assert prior <= math.sqrt(78 / 20190) < prior + Fraction(1, 10**6)
    spec = parse_spec(SPEC.replace("split: auto", "split: paper"))
    plan = plan_prior(spec, [20190])
    assert (plan.epsilon_prior, plan.epsilon_label) == paper_split(Fraction(1), 20190, 91)
    assert plan.pooled_cells is None and not plan.shrunk and plan.reason is None


@pytest.mark.parametrize(("rows", "ok"), [(312, False), (313, True)])
def test_paper_needs_more_than_k_over_epsilon_squared_rows(rows, ok):
    if ok:
        assert paper_split(Fraction(1, 2), rows, 78)[1] > 0
    else:
        with pytest.raises(BudgetError, match=r"n ≥ 313.*Use split: auto.*uniform"):
            paper_split(Fraction(1, 2), rows, 78)


def test_a_small_table_is_not_charged_for_a_prior(place):
    """√(k/n) put 0.952 of ε = 1 on the prior, and the loss was 3.5e7 where uniform has 77,739."""
    wide = ("max: 90", "max: 400")
    certificate, said = compiled(place, wide)
    assert certificate["privacy"]["epsilon_label"] == 1
    assert certificate["utility"]["noisy_label_loss"] <= 1.05 * 77739.5
    assert certificate["prior"]["kind"] == "uniform"
    assert (
        "split: auto: no histogram is taken. With 442 rows, 401 labels and ε = 1, it would" in said
    )
    paper, _ = compiled(place, wide, ("split: auto", "split: paper"))
    assert paper["prior"]["kind"] == "private" and paper["prior"]["split"] == "paper"
    assert paper["utility"]["noisy_label_loss"] > 1e7


def test_verify_takes_the_uniform_prior_of_a_private_spec_for_autos(place):
    certificate, _ = compiled(place)
    assert certificate["exact"]["epsilon_prior"] == "0"
    assert labeldp("verify", "build/progress.onnx", "--spec", "spec.yaml").exit_code == 0
    for old, new in (
        ("split: auto", "split: {prior: 0.2, label: 0.8}"),
        ("split: auto", "split: paper"),
        ("kind: private\n  data: labels.parquet", "kind: public\n  data: labels.parquet"),
    ):
        other = SPEC.replace(old, new).encode()
        found = spec_disagreements(other, parse_certificate(certificate))
        assert any(line.startswith("prior.kind") for line in found), new


def test_cells_are_stated_and_their_prior_is_even_within(place):
    labels = np.random.default_rng(3).gamma(4, 9, 20_000).round().astype(int).clip(0, 90)
    pq.write_table(pa.table({"target": labels}), place / "labels.parquet")
    certificate, said = compiled(place)
    prior, spent = certificate["prior"], certificate["privacy"]["epsilon_prior"]
    assert prior["kind"] == "private" and 0 < spent < 0.05
    cells = int(prior["post_processing"].split()[0])
    assert prior["post_processing"].startswith(f"{cells} cells of neighbouring labels: shrinking")
    assert f"on a rough histogram ({cells} bins)" in said
    assert prior["scale"] == pytest.approx(2 / spent) and prior["split"] == "auto"
    assert len(prior["weights"]) == 91 and len(set(prior["weights"])) <= cells
    assert labeldp("verify", "build/progress.onnx", "--spec", "spec.yaml").exit_code == 0
    plan = json.loads(labeldp("plan", "spec.yaml", "--json").stdout)
    assert plan["prior"]["cells"] == cells and plan["privacy"]["epsilon_prior"] == spent
    assert plan["prior"]["noise"]["average_count"] == pytest.approx(20_000 / cells)


@pytest.mark.parametrize("kind", [*BY_DEFAULT, "staircase, clipped"])
def test_who_says_so_does_not_look_at_the_prior(kind):
    """``follows_prior`` is false exactly where two priors give the same integers."""
    from labeldp_verify.analysis import CostMatrix, Costs
    from labeldp_verify.forms import IntegerDomain

    from labeldp_compile.mechanisms.mechanism import Problem

    kind, _, clipped = kind.partition(", ")
    mechanism, loss = mechanism_class(kind).named(**({"clip": True} if clipped else {})), "squared"
    if kind == "least_cost":
        loss = CostMatrix(
            Costs([*range(10)], 1, [[abs(y - o) for o in range(10)] for y in range(10)])
        )
    made = [
        mechanism.build(Problem(IntegerDomain(0, 9), weights, Fraction(1), loss)).randomizer
        for weights in ([1] * 10, [90, 50, 1, 1, 1, 1, 1, 1, 1, 1])
    ]
    assert (made[0] == made[1]) == (not mechanism.follows_prior)


def test_a_ledger_is_not_asked_where_nothing_is_spent(place):
    text = SPEC.replace("split: auto", "split: auto\n  ledger: no.ledger").replace(
        "data: labels.parquet", "data: labels.parquet\n  data_set: d\n  data_version: one"
    )
    (place / "spec.yaml").write_text(text)
    assert labeldp("plan", "spec.yaml").exit_code == 0
    result = labeldp("compile", "spec.yaml", "-o", "build")
    assert result.exit_code == 0, result.output
    assert not (place / "no.ledger").exists()


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.sampled_from(["optimal_unbiased", "rr_on_bins", "rr_with_prior"]),
    st.integers(1, 10**9),
    st.integers(2, 10**6),
    st.decimals("0.000001", "60", places=6),
)
def test_any_plan_adds_up(kind, rows, labels, epsilon):
    spec = parse_spec(
        SPEC.replace("max: 90", f"max: {labels - 1}")
        .replace("epsilon: 1", f"epsilon: {epsilon}")
        .replace("kind: auto", f"kind: {kind}")
    )
    plan = plan_prior(spec, [rows])
    assert plan.epsilon_prior + plan.epsilon_label == Fraction(epsilon)
    assert 0 <= plan.epsilon_prior <= Fraction(epsilon) / 2
    assert plan.is_uniform or plan.shrunk
    assert plan.pooled_cells is None or 2 <= plan.pooled_cells <= labels / 2
    # More rows never make it give up.
    if not plan.is_uniform:
        assert not plan_prior(spec, [2 * rows]).is_uniform


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.integers(-50, 500), min_size=2, max_size=9), st.integers(0, 30), st.data())
def test_shrunk_weights_lie_between_the_even_and_the_noisy(counts, more, data):
    labels, total = len(counts) + more, data.draw(st.integers(1, 1000))
    weights = shrunk_weights(NoisyHistogram(counts, 10.0), total, labels)
    assert len(weights) == labels and min(weights) >= 0 and sum(weights) > 0
    assert sum(weights) <= labels * total + labels
    # All noise: nothing is left of it. No noise to speak of: the projection itself.
    even = shrunk_weights(NoisyHistogram(counts, 1e6), total, labels)
    assert len(set(even)) <= 2 and max(even) - min(even) <= 1
    spread = coarse(np.array(weights), len(counts))
    assert len(set(weights)) <= len(counts) and spread.sum() == sum(weights)


def test_cells_keep_the_sensitivity():
    """One label moves one unit from a cell to another, or none."""
    counts = np.arange(10)
    for source in range(10):
        for target in range(10):
            moved = counts.copy()
            moved[source] -= 1
            moved[target] += 1
            assert np.abs(coarse(moved, 4) - coarse(counts, 4)).sum() in (0, 2)
    assert coarse(counts, 4).sum() == counts.sum() and coarse(counts, 10).tolist() == list(
        range(10)
    )
