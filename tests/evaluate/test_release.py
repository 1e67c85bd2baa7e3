"""``labeldp evaluate --release``: private by brute force, exact sums, remembered by its ledger."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.evaluate import release
from labeldp_compile.evaluate import release as mechanism
from labeldp_compile.evaluate.release import (
    BOUNDED,
    UNITS,
    chance_beyond,
    changes,
    noise_margin,
    noisy_sums,
    steps,
)
from tests.cli.test_cli import labeldp
from tests.evaluate.test_command import BINARY, NUMBERS
from tests.fixtures.compiled import compile_text


def whole(generator, rows, sums, labels, most=5):
    """Losses [n, j, k] of a tiny table."""
    return generator.integers(0, most, (rows, sums, labels))


def in_blocks(units, labels, persons=None, rows=2):
    """As the mechanism takes them."""
    for start in range(0, len(labels), rows):
        part = slice(start, start + rows)
        yield units[part], np.array(labels)[part], None if persons is None else persons[part]


def exact_sums(monkeypatch):
    """No noise; the list gets the scale that it would have had."""
    scales = []
    monkeypatch.setattr(
        mechanism, "discrete_laplace", lambda count, scale: scales.append(scale) or [0] * count
    )
    return scales


@pytest.mark.parametrize("sums", [1, 2, 3])
@pytest.mark.parametrize("labels", [2, 3, 4])
@pytest.mark.parametrize("people", [None, [0, 0, 1]])
def test_no_output_is_more_than_e_to_epsilon_times_as_likely(monkeypatch, sums, labels, people):
    """Over all labelings of three rows, and every output: |x|-exponents differ by at most ε."""
    scales, generator = exact_sums(monkeypatch), np.random.default_rng(sums * labels)
    epsilon, tight = Fraction(1, 2), False
    for _ in range(3):
        units = whole(generator, 3, sums, labels)
        persons = None if people is None else np.array(people, np.uint64)
        every = {
            labeling: noisy_sums(in_blocks(units, labeling, persons), epsilon)["sums"]
            for labeling in itertools.product(range(labels), repeat=3)
        }
        (scale,) = set(scales)  # the same for every labeling: it depends on no label
        scales.clear()
        own = range(3) if people is None else people
        for one, other in itertools.combinations(every, 2):
            changed = {own[i] for i in range(3) if one[i] != other[i]}
            if len(changed) == 1:
                # ln of the ratio of Pr[output] is at most |difference|₁ / scale, and reaches it.
                apart = sum(abs(a - b) for a, b in zip(every[one], every[other], strict=True))
                assert apart / scale <= epsilon
                tight |= people is None and apart / scale == epsilon
    assert tight or people is not None


def test_drawn_outputs_have_the_noise_of_the_scale():
    """Both labelings of one row: many equal losses, so that one release draws often."""
    draws, q = 4000, math.exp(-1 / 2)  # Δ = 2·draws and ε = draws: the scale is 2
    units = np.array([[[0, 2]] * draws])
    for label in (0, 1):
        drawn = Counter(noisy_sums(in_blocks(units, [label]), Fraction(draws))["sums"])
        for x in range(-3, 6):
            chance = (1 - q) / (1 + q) * q ** abs(x - 2 * label)
            assert abs(drawn[x] - draws * chance) < 7 * math.sqrt(draws * chance)


def test_changes_are_those_of_the_worst_pair_whichever_way_they_are_found():
    generator = np.random.default_rng(0)
    for sums, labels in ((1, 7), (2, 9), (3, 2), (4, 5), (5, 3)):
        units = whole(generator, 40, sums, labels, 50)
        pairs = [
            np.abs(units[:, :, a] - units[:, :, b]).sum(axis=1)
            for a, b in itertools.combinations(range(labels), 2)
        ]
        assert np.array_equal(changes(units), np.max(pairs, axis=0))
        assert steps(sums, labels) == min(len(pairs), 2 ** (sums - 1))


@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(70)])
def test_margins_are_the_least_that_noise_exceeds_in_5_percent(scale, terms):
    q = math.exp(-1 / scale)
    reach = np.arange(-4000, 4001)
    one = (1 - q) / (1 + q) * q ** np.abs(reach)
    chances = one if terms == 1 else np.convolve(one, one, "same")
    margin = noise_margin(scale, terms)
    for t in (0, 1, margin):
        beyond = chances[np.abs(reach) > t].sum()
        assert chance_beyond(t, scale, terms) == pytest.approx(beyond, rel=1e-6)
    assert chances[np.abs(reach) > margin].sum() <= 0.05
    assert margin == 0 or chances[np.abs(reach) > margin - 1].sum() > 0.05
    assert noise_margin(Fraction(10**12), terms) > 10**12


def test_losses_are_within_their_bounds_for_any_prediction():
    numbers, classes = np.arange(3.0, 9.0), np.arange(4)
    wild = np.array([-1e300, 2.0, 5.5, 8.9, 1e300])
    for name, loss in BOUNDED.items():
        if loss.of_numbers:
            units = loss.units(numbers, wild, 0.01)
            close = np.abs(wild.clip(3, 8)[:, None] - numbers) ** (2 if "sq" in name else 1)
        else:
            chances = np.array([[0, 1, 0, 0], [-3, 9, 0.5, 0.1], [0.25] * 4])
            units = loss.units(classes, chances, 0.01)
            close = -np.log(chances.clip(0.01, 1))
            if name == "accuracy":
                close = np.eye(4)[chances.argmax(axis=1)]
        assert units.min() >= 0 and units.max() <= UNITS
        bound = loss.bound(numbers if loss.of_numbers else classes, 0.01)
        assert np.allclose(units * bound / UNITS, close, atol=bound / UNITS)


# The command


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A spec and an artifact of two classes, a table of true labels, predictions, and a ledger."""
    (tmp_path / "config.toml").touch(mode=0o600)
    monkeypatch.setenv("LABELDP_CONFIG", str(tmp_path / "config.toml"))
    generator = np.random.default_rng(0)
    (tmp_path / "x.onnx").write_bytes(compile_text(BINARY).model)
    (tmp_path / "x.yaml").write_text(BINARY, encoding="utf-8")
    (tmp_path / "numbers.yaml").write_text(NUMBERS, encoding="utf-8")
    chance = generator.random(400)
    labels = np.where(generator.random(400) < chance, "yes", "no")
    truth = {"y": labels, "who": np.arange(400) // 3, "again": labels}
    pq.write_table(pa.table(truth), tmp_path / "true.parquet")
    pa_csv.write_csv(pa.table(truth), tmp_path / "true.csv")
    models = {"one": chance, "same": chance, "other": 1 - chance, "label": labels}
    pq.write_table(pa.table(models), tmp_path / "models.parquet")
    assert labeldp("ledger", "init", tmp_path / "x.ledger").exit_code == 0
    budget = ("--data-set", "held", "--epsilon", "1")
    assert labeldp("ledger", "set-budget", tmp_path / "x.ledger", *budget).exit_code == 0
    return tmp_path


def released(folder, *more, source="x.onnx", labels="true.parquet", models="models.parquet"):
    chosen = () if "--model" in more else ("--model", "one", "--model", "other")
    epsilon = () if "--release" in more else ("--release", "0.5")
    table = (folder / source, folder / models, folder / labels)
    return labeldp("evaluate", *table, *epsilon, *chosen, *more)


def booked(folder, *more, **files):
    place = ("--ledger", folder / "x.ledger", "--data-set", "held", "--data-version", "1")
    return released(folder, *place, *more, **files)


def entries(folder):
    shown = json.loads(labeldp("ledger", "show", folder / "x.ledger", "--json").stdout)
    return [entry["kind"] for entry in shown["entries"]], shown["data_sets"]["held"]["spent"]


@pytest.mark.parametrize("source", ["x.onnx", "x.yaml"])
@pytest.mark.parametrize("labels", ["true.parquet", "true.csv"])
def test_metrics_of_true_labels_are_within_the_noise(files, source, labels):
    result = released(files, "--json", source=source, labels=labels)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["rows"] == 400 and found["unit"] == "label" and found["ledger"] is None
    right = pq.read_table(files / "true.parquet")["y"].to_numpy(zero_copy_only=False) == "yes"
    one = pq.read_table(files / "models.parquet")["one"].to_numpy()
    by_name = {(m["metric"], m["model"]): m for m in found["measured"]}
    accuracy = np.mean((one > 0.5) == right)
    measured = by_name["accuracy", "one"]
    # Δ is at most the number of sums; the noise of scale Δ/ε exceeds 25 scales once in 10^10.
    reach = 25 * len(found["exact"]["sums"]) * 2 / 0.5 / 400
    assert abs(measured["value"] - accuracy) < reach
    assert measured["low"] <= measured["value"] <= measured["high"]
    difference = by_name["accuracy", "one − other"]
    assert difference["high"] - difference["low"] < 2 * (measured["high"] - measured["low"]) + 1
    assert Fraction(found["exact"]["scale"]) == Fraction(found["exact"]["sensitivity"]) * 2


def test_what_is_shown_is_no_narrower_than_the_interval(files):
    """A share of 1/7 whose margin is below a millionth; ε has more digits than are shown."""
    pq.write_table(pa.table({"y": ["yes", *["no"] * 6]}), files / "true.parquet")
    pq.write_table(pa.table({"m": ["yes"] * 7}), files / "models.parquet")
    told = released(files, "--model", "m", "--release", "1000000000.1").stdout.splitlines()
    low, high = map(Fraction, told[4].split()[3:5])
    value, margin = (Fraction(told[-1].split()[at]) for at in (3, 5))
    for start, end in ((low, high), (value - margin, value + margin)):
        assert 0 < start <= Fraction(1, 7) <= end < start + Fraction(1, 10**5)
    assert "ε = 1.00001e+09 for" in told[0]


def test_the_same_question_spends_once_whatever_models_are_called(files):
    first = booked(files, "--json")
    assert first.exit_code == 0, first.output
    assert entries(files) == (["ledger", "budget", "spend", "release"], 0.5)
    table = pq.read_table(files / "models.parquet")
    pq.write_table(table.rename_columns(["b", "c", "a", "label"]), files / "renamed.parquet")
    names = ("--model", "a", "--model", "b", "--model", "c")  # b and c are the same predictions
    again = booked(files, *names, "--json", models="renamed.parquet")
    assert again.exit_code == 0 and "nothing is spent" in again.stderr
    assert entries(files)[1] == 0.5
    old, new = (json.loads(result.stdout)["exact"]["sums"] for result in (first, again))
    for metric, each in new.items():
        assert each["b"] == each["c"] == old[metric]["one"] and each["a"] == old[metric]["other"]


def test_other_predictions_metrics_or_persons_are_another_question(files):
    assert booked(files).exit_code == 0
    table = pq.read_table(files / "models.parquet")
    altered = table["one"].to_numpy().copy()
    altered[7] = np.nextafter(altered[7], 1)
    pq.write_table(table.set_column(0, "one", pa.array(altered)), files / "altered.parquet")
    for more, given in (
        ((), {"models": "altered.parquet"}),
        (("--metric", "accuracy"), {}),
        (("--least-probability", "0.01"), {}),
        (("--person", "who"), {}),
        (("--model", "one"), {}),
    ):
        before = entries(files)[1]
        found = booked(files, *more, **given)
        if before == 1.0:  # the budget is spent
            assert found.exit_code == 1 and "no label was read" in found.stderr
            assert entries(files)[1] == 1.0
        else:
            assert found.exit_code == 0 and entries(files)[1] == before + 0.5


def test_other_labels_under_the_same_name_are_refused(files):
    assert booked(files).exit_code == 0
    table = pq.read_table(files / "true.parquet")
    other = pa.array(np.where(np.arange(400) % 2, "yes", "no"))
    pq.write_table(table.set_column(0, "y", other), files / "other.parquet")
    found = booked(files, "--model", "one", labels="other.parquet")
    assert found.exit_code == 2 and "need a new data_version" in found.stderr


def test_persons_with_several_rows_get_more_noise(files):
    one, all_rows = (
        json.loads(released(files, *more, "--json").stdout) for more in ((), ("--person", "who"))
    )
    assert all_rows["unit"] == "person"
    assert 1 < all_rows["exact"]["sensitivity"] / one["exact"]["sensitivity"] <= 3


@pytest.mark.parametrize("write", [pq.write_table, pa_csv.write_csv])
def test_rows_without_a_label_are_left_out_where_nulls_are_public(files, write):
    """They counted as rows with the lowest label, in the metrics and in the number of labels."""
    name = "t.parquet" if write is pq.write_table else "t.csv"
    (files / "n.yaml").write_text(NUMBERS.replace("max: 9}}", "max: 9}, nulls: public}"))
    labels = [None, 9, 9, None, 9, 9, 9, 9]
    write(pa.table({"y": labels, "who": [0, 0, 0, 1, 1, 1, 1, 1], "m": [9] * 8}), files / name)
    options = ("--release", "1000", "--metric", "squared error", "--model", "m", "--person", "who")
    done = released(files, *options, "--json", source="n.yaml", labels=name, models=name)
    found = json.loads(done.stdout)
    assert found["rows"] == 6 and found["measured"][0]["value"] < 0.1
    assert found["exact"]["sensitivity"] == 4 * UNITS  # of four rows of a person, not five
    once = ("--release", "0.5", *options[2:], "--json")
    for _ in range(2):  # spent once, and recalled
        done = booked(files, *once, source="n.yaml", labels=name, models=name)
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["rows"] == 6 and entries(files)[1] == 0.5
    write(pa.table({"y": pa.nulls(8, pa.int64()), "who": [1] * 8, "m": [9] * 8}), files / name)
    none = released(files, *options, source="n.yaml", labels=name, models=name)
    assert none.exit_code == 2 and "no row has a label" in none.stderr


def test_no_message_depends_on_a_label(files):
    """All labels the same, missing or unknown: the same words, table and exit code."""
    seen = set()
    for labels in (["yes"] * 400, ["no"] * 400, [None] * 400, ["\x1b[2J?"] * 400):
        column = pa.array(labels, pa.string())
        table = pa.table({"y": column, "who": np.arange(400)})
        pq.write_table(table, files / "other.parquet")
        found = released(files, labels="other.parquet")
        metrics = ("log loss  ", "accuracy  ", "log loss of", "metric")
        words = [line for line in found.output.splitlines() if not line.startswith(metrics)]
        seen.add((found.exit_code, tuple(words)))
        assert len(found.stdout.splitlines()) <= 15
    assert len(seen) == 1 and next(iter(seen))[0] == 0


@pytest.mark.parametrize(
    ("more", "given", "says"),
    [
        (("--metric", "AUC"), {}, "no mean over rows with a declared bound"),
        (("--by", "who"), {}, "--by is for estimates"),
        (("--person", "y"), {}, "is the label"),
        (("--person", "Y "), {}, "is the label"),
        (("--model", "y"), {"models": "true.parquet"}, "'y' is the label, and no prediction"),
        (("--model", "y"), {"models": "true.csv", "labels": "true.csv"}, "'y' is the label"),
        (("--person", "y", "--column", "again"), {}, "is the label"),
        (("--release", "0"), {}, "--release: must be above 0"),
        (("--least-probability", "1"), {}, "above 0 and below 1"),
        (("--model", "one"), {"source": "numbers.yaml"}, "integer domain"),
    ],
)
def test_bad_input_is_one_clear_error_before_anything_is_spent(files, more, given, says):
    result = released(files, *more, **given)
    assert result.exit_code == 2 and says in result.stderr and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert entries(files) == (["ledger", "budget"], 0.0)


def test_rows_must_be_the_same_and_labels_not_private(files):
    fewer = pq.read_table(files / "models.parquet").slice(0, 10)
    pq.write_table(fewer, files / "fewer.parquet")
    for labels in ("true.parquet", "true.csv"):
        result = booked(files, labels=labels, models="fewer.parquet")
        assert result.exit_code == 2 and "in the same order" in result.stderr
    private = files / "private.parquet"
    done = labeldp("randomize", files / "x.onnx", files / "true.parquet", "-o", private)
    assert done.exit_code == 0, done.output
    result = booked(files, labels="private.parquet")
    assert result.exit_code == 2 and "already holds private labels" in result.stderr
    assert entries(files) == (["ledger", "budget"], 0.0)


def test_a_table_that_changes_after_the_spending_is_said_to_have_spent(files, monkeypatch):
    monkeypatch.setattr(release, "label_indexes", lambda domain: lambda labels: np.zeros(1, int))
    result = booked(files)
    assert result.exit_code == 2 and "stays spent in the ledger" in result.stderr
    assert entries(files) == (["ledger", "budget", "spend"], 0.5)
    result = released(files)
    assert result.exit_code == 2 and "changed while it was read\n" in result.stderr
