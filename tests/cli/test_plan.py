"""``labeldp plan``: what it says is what the compile that follows does, and it reads no label."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.build.pipeline import compile_spec
from labeldp_compile.build.plan import plan_spec
from labeldp_compile.cli import main
from labeldp_compile.prior import obtain
from labeldp_compile.tabular.reader import TableReader

ROWS, SIZE = 5000, 10
SPEC = """
version: 1
name: visits
label:
  column: visits
  domain: {kind: integer, min: 0, max: 9}
loss: squared
privacy: {epsilon: 2.0}
prior: {kind: private, data: visits.parquet}
mechanism: {kind: rr_on_bins}
"""


def labeldp(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def place(tmp_path):
    generator = np.random.default_rng(0)
    labels = generator.poisson(2.0, ROWS)
    table = pa.table({"id": [f"{i:05}" for i in range(ROWS)], "visits": labels})
    pq.write_table(table, tmp_path / "visits.parquet")
    pa_csv.write_csv(table, tmp_path / "visits.csv")
    return tmp_path


def spec_in(place, *changes, name="spec.yaml"):
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (place / name).write_text(text, encoding="utf-8")
    return place / name


CSV = ("data: visits.parquet", "data: visits.csv")
CSV_WITH_ROWS = ("data: visits.parquet", f"data: visits.csv, rows: {ROWS}")
GIVEN = ("epsilon: 2.0", "epsilon: 2.0, split: {prior: 0.25, label: 1.75}")


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [CSV_WITH_ROWS],
        [GIVEN],
        [CSV, GIVEN],
        [("{kind: private, data: visits.parquet}", "{kind: public, data: visits.csv}")],
        [("{kind: private, data: visits.parquet}", "{kind: uniform}")],
        [("{kind: rr_on_bins}", "{kind: auto}")],
    ],
    ids=["parquet", "csv", "given", "csv given", "public", "uniform", "auto"],
)
def test_the_compile_that_follows_spends_what_was_planned(place, changes):
    spec = spec_in(place, *changes)
    plan = json.loads(labeldp("plan", spec, "--json").stdout)
    artifact = compile_spec(spec, test_seed=1)
    certificate = artifact.certificate.to_json()
    for part in ("total", "prior", "label"):
        key = f"epsilon_{part}"
        assert plan["privacy"]["exact"][key] == certificate["exact"][key]
        assert plan["privacy"][key] == certificate["privacy"][key]
    assert plan["labels"] == certificate["labels"]
    assert plan["label"]["domain"] == certificate["label"]["domain"]
    assert plan["mechanism"]["kind"] == certificate["mechanism"]
    assert plan["auto"] == certificate["auto"]
    if certificate["prior"]["kind"] == "private":
        assert plan["prior"]["noise"]["scale"] == pytest.approx(certificate["prior"]["scale"])
        assert plan["prior"]["rows"] in (None, certificate["prior"]["rows"])
    assert artifact.write(place / "out").name == plan["writes"][0]
    assert sorted(path.name for path in (place / "out").iterdir()) == sorted(plan["writes"])


def test_no_label_is_read(place, monkeypatch):
    """The column data is garbage behind an intact footer, and the CSV is no text at all."""
    data = bytearray((place / "visits.parquet").read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[4:-footer] = b"\xff" * (len(data) - footer - 4)
    expected = json.loads(labeldp("plan", spec_in(place), "--json").stdout)
    (place / "visits.parquet").write_bytes(data)
    (place / "visits.csv").write_bytes(b"\xff\x00" * 100)
    monkeypatch.setattr(TableReader, "batches", None)
    for changes in ([], [CSV_WITH_ROWS], [CSV, GIVEN]):
        result = labeldp("plan", spec_in(place, *changes))
        assert result.exit_code == 0, result.output
    assert json.loads(labeldp("plan", spec_in(place), "--json").stdout) == expected
    assert expected["prior"]["rows"] == ROWS


def test_a_csv_file_is_not_even_opened(place, monkeypatch):
    from labeldp_compile.tabular import reader

    monkeypatch.setattr(reader, "open_table", None)
    assert labeldp("plan", spec_in(place, CSV_WITH_ROWS)).exit_code == 0
    assert labeldp("plan", spec_in(place, CSV, GIVEN)).exit_code == 0


def test_a_csv_file_without_rows_needs_them_only_for_the_split(place):
    result = labeldp("plan", spec_in(place, CSV))
    assert result.exit_code == 2 and result.stdout == ""
    assert "add the line `rows: N` under `data: visits.csv`" in result.stderr
    assert result.stderr.count("\n") == 1 and "split: {prior: …, label: …}" in result.stderr
    given = labeldp("plan", spec_in(place, CSV, GIVEN))
    assert given.exit_code == 0 and "number of rows not stated" in given.stdout


REFUSED = {
    "too few rows": [("epsilon: 2.0", "epsilon: 0.01, split: paper")],
    "missing column": [("column: visits", "column: visit")],
    "wrong type": [("column: visits", "column: id")],
    "missing file": [("visits.parquet", "nothing.parquet")],
    "missing csv": [("visits.parquet", "nothing.csv"), GIVEN],
    "no table": [("visits.parquet", "spec.yaml")],
    "other rows": [("visits.parquet", "visits.parquet, rows: 4999")],
    "unknown key": [("epsilon: 2.0", "epsilonn: 2.0")],
    "infeasible outputs": [
        ("{kind: rr_on_bins}", "{kind: optimal_unbiased, outputs: {values: [0, 9]}}")
    ],
    "noise too fine": [("{kind: rr_on_bins}", "{kind: laplace, lattice: 0.000001}")],
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_compile_refuses_before_spending_is_refused_alike(place, case, monkeypatch):
    monkeypatch.setattr(obtain, "noisy_histogram", None)  # nothing may be spent here
    spec = spec_in(place, *REFUSED[case])
    planned, compiled = labeldp("plan", spec), labeldp("compile", spec, "-o", place / "out")
    assert planned.exit_code == compiled.exit_code == 2, planned.output
    assert planned.stderr == compiled.stderr
    assert planned.stdout == ""
    assert planned.stderr.count("labeldp: ") == 1
    assert not (place / "out").exists()


@pytest.mark.parametrize("data", ["visits.parquet", "visits.csv"])
def test_compile_refuses_another_number_of_rows_before_it_spends(place, monkeypatch, data):
    monkeypatch.setattr(obtain, "noisy_histogram", None)
    spec = spec_in(place, ("data: visits.parquet", f"data: {data}, rows: 4999"))
    result = labeldp("compile", spec, "-o", place / "out")
    assert result.exit_code == 2 and "has 5,000 rows, but the spec says rows: 4999" in result.stderr


def test_the_noise_is_what_discrete_laplace_noise_does(place):
    plan = plan_spec(spec_in(place, GIVEN))
    noise = plan.budget.noise
    assert noise.scale == 8.0 and noise.average_count == ROWS / SIZE
    generator = np.random.default_rng(3)
    first, second = generator.geometric(-np.expm1(-1 / noise.scale), size=(2, 400_000))
    assert noise.deviation == pytest.approx(np.std(first - second), rel=0.01)
    words = labeldp("plan", spec_in(place, GIVEN), "--verbose").stdout
    assert "sd 11.31 rows, 2.3% of the average label's 500.0" in words


MECHANISMS = {
    "{kind: randomized_response}": SIZE,
    "{kind: rr_on_bins}": None,
    "{kind: rr_top_k, k: 3}": 3,
    "{kind: rr_with_prior}": None,
    "{kind: optimal_unbiased}": None,
    "{kind: debiased_rr}": SIZE,
    "{kind: laplace}": 370,
    "{kind: staircase, clip: true, lattice: 0.25}": 9 * 4 + 1,
    "{kind: exponential}": SIZE,
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_estimates_hold_for_the_compile_that_follows(place, mechanism):
    spec = spec_in(place, ("{kind: rr_on_bins}", mechanism))
    estimated = plan_spec(spec).forecast
    artifact = compile_spec(spec, test_seed=1)
    assert estimated.size.least / 2 <= len(artifact.model) <= estimated.size.most * 2
    assert estimated.outputs.least <= artifact.randomizer.outputs <= estimated.outputs.most
    if estimated.outputs.least == estimated.outputs.most:
        assert artifact.randomizer.outputs == estimated.outputs.most


@pytest.mark.parametrize("stands_out", [False, True])
def test_the_size_of_groups_is_a_range_that_holds_what_compile_makes(place, stands_out):
    generator = np.random.default_rng(4)
    group = np.arange(60_000) % 9
    labels = generator.poisson(1.0 + np.where(stands_out, group, 3))
    pq.write_table(pa.table({"visits": labels, "g": group}), place / "visits.parquet")
    groups = "groups: {column: g, values: [0, 1, 2, 3, 4, 5, 6, 7, 8]}\nmechanism"
    spec = spec_in(place, ("mechanism", groups))
    estimated = plan_spec(spec).forecast.size
    artifact = compile_spec(spec, test_seed=1)
    assert len(artifact.certificate.tables) == (10 if stands_out else 1)
    assert estimated.least / 2 <= len(artifact.model) <= estimated.most * 2
    assert estimated.most > 4 * estimated.least
    words = labeldp("plan", spec).stdout.splitlines()
    size = next(line for line in words if line.startswith("  size"))
    assert " kB to " in size and "depending on the prior" in size


def test_a_known_prior_makes_rr_with_prior_known(place):
    weights = [2 ** (9 - i) for i in range(10)]
    public = ("{kind: private, data: visits.parquet}", f"{{kind: public, weights: {weights}}}")
    spec = spec_in(place, public, ("{kind: rr_on_bins}", "{kind: rr_with_prior}"))
    estimated = plan_spec(spec).forecast
    assert estimated.outputs.least == estimated.outputs.most
    assert compile_spec(spec).randomizer.outputs == estimated.outputs.most


def test_words_say_what_json_says(place):
    spec = spec_in(place, ("{kind: rr_on_bins}", "{kind: auto}"), ("loss:", "goal: labels\nloss:"))
    words = labeldp("plan", spec, "--verbose").stdout
    plan = json.loads(labeldp("plan", spec, "--json").stdout)
    assert f"{plan['privacy']['epsilon_prior']:.6g}" in words
    assert plan["auto"] in words and "n = 5,000 rows" in words
    assert "clamped to the nearest end" in words
    assert "become 0, the lowest label, because the spec has no rule for nulls" in words
    assert list(plan)[:4] == ["format_version", "name", "label", "labels"]
    total = sum(Fraction(plan["privacy"]["exact"][f"epsilon_{p}"]) for p in ("prior", "label"))
    assert total == Fraction(plan["privacy"]["exact"]["epsilon_total"]) == 2


@pytest.mark.parametrize(
    ("privacy", "is_weak"),
    [
        ("epsilon: 9.0", False),
        ("epsilon: 9.3", True),
        ("epsilon: 2.0, labels_per_user: 4", False),
        ("epsilon: 2.0, labels_per_user: 5", True),
    ],
)
def test_an_epsilon_that_protects_hardly_any_label_is_warned_of(place, privacy, is_weak):
    """From ε = 2·ln 99 on, who was 1% sure of a label can be 99% sure of it."""
    uniform = ("{kind: private, data: visits.parquet}", "{kind: uniform}")
    spec = spec_in(place, ("epsilon: 2.0", privacy), uniform)
    for command in (("plan",), ("plan", "--verbose"), ("compile", "-o", place / "out")):
        done = labeldp(command[0], spec, *command[1:])
        assert done.exit_code == 0, done.output
        assert ("protects hardly any label" in done.output) == is_weak


QUESTIONS = {
    ("optimal_unbiased", "private"): "means; only with some priors shares, histogram, quantiles",
    ("laplace", "private"): "means",
    ("randomized_response", "private"): "means, shares, histogram, quantiles",
}


@pytest.mark.parametrize(("kind", "prior"), QUESTIONS)
def test_a_plan_says_which_questions_private_labels_answer(place, kind, prior):
    loss = "zero_one" if kind == "randomized_response" else "squared"
    spec = spec_in(place, ("rr_on_bins", kind), ("loss: squared", f"loss: {loss}"))
    (line,) = (x for x in labeldp("plan", spec).stdout.splitlines() if x.startswith("  mechanism"))
    assert QUESTIONS[kind, prior] in line
    assert ("write loss: zero_one" in line) == ("means;" in line)


def test_numbers_of_sets_are_named_before_anything_is_spent(place):
    spec = spec_in(place, ("rr_on_bins", "subset_selection"), ("loss: squared", "loss: zero_one"))
    said = labeldp("plan", spec).stdout
    assert "number of a set" in said and "kind: randomized_response" in said
