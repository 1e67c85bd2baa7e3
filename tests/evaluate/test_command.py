"""``labeldp evaluate``: metrics that fit true labels, differences, groups, and refusals."""

import errno
import hashlib
import json
import os
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_learn import PrivateLabels, evaluate, evaluation
from labeldp_runtime import Randomizer

from labeldp_compile.cli import main
from labeldp_compile.evaluate import rows as tables
from labeldp_compile.tabular import reader
from labeldp_compile.tabular.provenance import KEY, Provenance, write_note
from tests.fixtures.compiled import compile_text

ROWS = 6000
BINARY = """
version: 1
name: example
label:
  column: y
  domain: {kind: categorical, values: ["no", "yes"]}
  out_of_domain: {default: "no"}
loss: zero_one
privacy: {epsilon: 1.5}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""
NUMBERS = """
version: 1
name: example
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 2}
prior: {kind: uniform}
mechanism: {kind: optimal_unbiased}
"""


def labeldp(*words):
    """The tables of these tests have no note."""
    return CliRunner().invoke(main, ["evaluate", "--unnoted", *map(str, words)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Artifacts, private labels, and predictions of two models; and the true labels."""
    folder, truth = tmp_path_factory.mktemp("evaluate"), {}
    generator = np.random.default_rng(0)
    x = generator.normal(size=ROWS)
    chance = 1 / (1 + np.exp(-1.5 * x))
    for name, spec in (("binary", BINARY), ("numbers", NUMBERS)):
        compiled = compile_text(spec)
        (folder / f"{name}.onnx").write_bytes(compiled.model)
        if name == "binary":
            true = np.where(generator.random(ROWS) < chance, "yes", "no")
            models = {"one": chance, "other": 0.5 + 0.3 * (chance - 0.5)}
        else:
            true = generator.binomial(9, chance)
            models = {"one": 9 * chance, "other": 9 * chance + 1}
        private = Randomizer(compiled.model)(true.tolist())
        group = np.where(np.arange(ROWS) % 3, "b", "a")
        table = pa.table({"y": private, "g": group, "who": np.arange(ROWS) // 2, **models})
        pq.write_table(table, folder / f"{name}.parquet")
        pa_csv.write_csv(table, folder / f"{name}.csv")
        truth[name] = true
    return folder, truth


def words(folder, name, *more, ending="parquet"):
    table = folder / f"{name}.{ending}"
    return (folder / f"{name}.onnx", table, table, "--model", "one", "--model", "other", *more)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_intervals_hold_the_metrics_on_true_labels(files, ending):
    folder, truth = files
    table = pq.read_table(folder / "numbers.parquet")
    result = labeldp(*words(folder, "numbers", "--json", ending=ending))
    assert result.exit_code == 0, result.output
    found = {(m["metric"], m["model"]): m for m in json.loads(result.stdout)["measured"]}
    for model in ("one", "other"):
        error = (truth["numbers"] - table[model].to_numpy()) ** 2
        measured = found["squared error", model]
        assert abs(measured["value"] - error.mean()) < 5 * measured["error"]
    difference = found["squared error", "one − other"]
    assert difference["high"] < 0 and difference["error"] < measured["error"]


def test_classes_have_log_loss_accuracy_and_area(files):
    folder, truth = files
    table = pq.read_table(folder / "binary.parquet")
    found = {}
    for ending in ("parquet", "csv"):
        result = labeldp(*words(folder, "binary", "--json", ending=ending))
        assert result.exit_code == 0, result.output
        found[ending] = json.loads(result.stdout)
    assert found["parquet"] == found["csv"]
    measured = {(m["metric"], m["model"]): m for m in found["csv"]["measured"]}
    one, right = table["one"].to_numpy(), truth["binary"] == "yes"
    for metric, value in (
        ("accuracy", np.mean((one > 0.5) == right)),
        ("log loss", -np.log(np.where(right, one, 1 - one)).mean()),
    ):
        assert abs(measured[metric, "one"]["value"] - value) < 5 * measured[metric, "one"]["error"]
    assert 0.7 < measured["AUC", "one"]["value"] < 0.95
    assert len(found["csv"]["calibration"]["one"]) == 10


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_labels_of_which_no_note_says_who_made_them_are_refused_or_named(files, tmp_path, ending):
    given = list(map(str, words(files[0], "numbers", ending=ending)))
    refused = CliRunner().invoke(main, ["evaluate", *given])
    assert refused.exit_code == 2 and "--unnoted" in refused.stderr and not refused.stdout
    assert labeldp(*given).stdout.endswith("(declared private, not shown)\n")
    assert json.loads(labeldp(*given, "--json").stdout)["noted"] is False
    table = pq.read_table(files[0] / "numbers.parquet")
    model = (files[0] / "numbers.onnx").read_bytes()
    for sha256, code in ((hashlib.sha256(model).hexdigest(), 0), ("0" * 64, 2)):
        note = write_note({"y": Provenance(sha256, 2.0)})
        pq.write_table(table.replace_schema_metadata({KEY: note}), tmp_path / "x.parquet")
        noted = [given[0], str(tmp_path / "x.parquet"), str(tmp_path / "x.parquet"), *given[3:]]
        for more in ([], ["--unnoted"]):
            result = CliRunner().invoke(main, ["evaluate", *more, *noted])
            assert result.exit_code == code and "not shown" not in result.output


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--metric", "nothing"), "there is no metric 'nothing'"),
        (("--metric", "AUC"), "is of classes"),
        (("--by", "y2"), "y2"),
        (("--model", "absent"), "absent"),
        (("--model", "p*"), "the labels are numbers"),
        (("--column", "one"), "not outputs"),
    ],
)
def test_bad_input_is_one_clear_error(files, more, says):
    result = labeldp(*words(files[0], "numbers", *more))
    assert result.exit_code == 2 and says in result.stderr and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["01234", "1234"], ["01234", "1234"]),
        ([2**60 + 1, 2**60 + 2, None], [2**60 + 1, 2**60 + 2, "null"]),
        ([date(2026, 1, 2), date(2026, 1, 1)], ["2026-01-01", "2026-01-02"]),
        ([datetime(2026, 1, 1), None], ["2026-01-01 00:00:00", "null"]),
        ([Decimal("1.10"), None], ["1.10", "null"]),
        (["", "\x1b[2J", "<b>", None], ["", "\x1b[2J", "<b>", "null"]),
    ],
    ids=["digits", "integers", "dates", "times", "decimals", "text"],
)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_groups_are_the_values_of_a_column(files, tmp_path, values, names, ending):
    """Text of digits was read as numbers: different groups were one."""
    table, artifact = pq.read_table(files[0] / "numbers.parquet"), files[0] / "numbers.onnx"
    column = pa.array([values[i % len(values)] for i in range(ROWS)])
    path = tmp_path / f"x.{ending}"
    (pq.write_table if ending == "parquet" else pa_csv.write_csv)(
        table.append_column("of", column), path
    )
    given = (artifact, path, path, "--model", "one", "--metric", "squared error")
    done = labeldp(*given, "--by", "of", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["measured"]
    if ending == "csv":
        names = sorted({"" if name == "null" else str(name) for name in names})
        names = [name.replace(" 00:00:00", " 00:00:00.000000") for name in names]
    assert [m["group"] for m in found] == [None, *names]
    shown = labeldp(*given, "--by", "of").stdout
    assert "\x1b" not in shown and ('""' in shown) == ("" in names)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("rule", ["person", "public nulls"])
def test_rows_without_a_private_label_are_left_out(tmp_path, kind, rule):
    unit = "privacy: {epsilon: 6, unit: person, person_column: who, labels_per_person: 3}"
    text = NUMBERS.replace("privacy: {epsilon: 2}", unit)
    if rule == "public nulls":
        text = NUMBERS.replace("max: 9}}", "max: 9}, nulls: public}")
    (tmp_path / "a.onnx").write_bytes(compile_text(text).model)
    generator = np.random.default_rng(1)
    has = generator.random(900) < 0.8
    drawer = Randomizer.load(tmp_path / "a.onnx", prepared=True)
    drawn = np.where(has, drawer(generator.integers(0, 10, 900)), np.nan)
    models = {"f": generator.integers(0, 10, 900).astype(float)}
    write = pq.write_table if kind == "parquet" else pa_csv.write_csv
    measured = []
    for name, keep in (("all", np.ones(900, bool)), ("some", has)):
        cells = pa.array(drawn[keep], from_pandas=True)
        path = tmp_path / f"{name}.{kind}"
        write(pa.table({"y": cells, **{m: f[keep] for m, f in models.items()}}), path)
        done = labeldp(tmp_path / "a.onnx", path, path, "--model", "f", "--json")
        assert done.exit_code == 0, done.output
        measured.append(json.loads(done.stdout))
    assert measured[0]["left_out"] == (~has).sum() and measured[1]["left_out"] == 0
    assert measured[0]["measured"] == measured[1]["measured"]
    words = labeldp(
        tmp_path / "a.onnx", tmp_path / f"all.{kind}", path.with_stem("all"), "--model", "f"
    )
    assert f"{(~has).sum():,} rows without one are left out" in words.stdout


def test_one_row_with_most_of_the_variance_is_named(files, tmp_path):
    """Where a model extrapolates far, no sample knows of the outputs that this row seldom has."""
    folder, _ = files
    table = pq.read_table(folder / "numbers.parquet")
    far = table["one"].to_numpy().copy()
    pq.write_table(table.append_column("usual", pa.array(far)), tmp_path / "usual.parquet")
    far[17] = 2000.0
    pq.write_table(table.append_column("far", pa.array(far)), tmp_path / "far.parquet")
    for name, warned in (("usual", False), ("far", True)):
        path = tmp_path / f"{name}.parquet"
        words = (folder / "numbers.onnx", path, path, "--model", name, "--model", "other")
        done = labeldp(*words)
        assert done.exit_code == 0, done.output
        assert ("of the expected variance of the squared error" in done.stderr) == warned
        found = json.loads(labeldp(*words, "--json").stdout)["measured"]
        largest = [m["largest"] for m in found if m["metric"] == "squared error"]
        assert (max(largest) > 0.5) == warned and (min(largest) < 0.1)
        assert all(m["largest"] is None for m in found if m["metric"] == "absolute error")


BLOCK, MANY = 32, 200


@pytest.fixture
def read_by(monkeypatch):
    """A function that sets how many rows a batch of a table has; blocks are small."""
    read = reader._batches
    monkeypatch.setattr(evaluation, "_MOST_ROWS", BLOCK)
    monkeypatch.setattr(tables, "_BLOCK", BLOCK)
    monkeypatch.setattr(tables, "_RUN", 3)
    monkeypatch.setattr(tables, "_IN_MEMORY", 1)

    def set_rows(rows):
        def divided(*given):
            for batch in read(*given):
                yield from (batch.slice(i, rows) for i in range(0, len(batch), rows))

        monkeypatch.setattr(reader, "_batches", divided)

    return set_rows


def close(one, other):
    """Facts in JSON that differ by the rounding of sums alone."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return one == other


@pytest.mark.parametrize("name", ["binary", pytest.param("numbers", marks=pytest.mark.slow)])
@pytest.mark.parametrize("words", ["", "--by g", "--person who", "--by g --person who"])
def test_results_do_not_depend_on_how_tables_are_read(files, read_by, tmp_path, name, words):
    """Persons, groups and equal predictions are in several files, batches, blocks and runs."""
    table = pq.read_table(files[0] / f"{name}.parquet").slice(0, MANY)
    who, one = np.random.default_rng(0).integers(0, 60, MANY), table["one"].to_numpy()
    table = table.set_column(2, "who", pa.array(who * 4096)).set_column(
        3, "one", pa.array(np.round(one, 1))
    )
    pieces = [table.slice(at, 67) for at in range(0, MANY, 67)]
    found = {}
    for order in (slice(None), slice(None, None, -1)):
        for ending, write in (("parquet", pq.write_table), ("csv", pa_csv.write_csv)):
            folder = tmp_path / f"{ending} {order.step}"
            folder.mkdir()
            for number, piece in enumerate(pieces[order]):
                write(piece, folder / f"{number}.{ending}")
            whole = tmp_path / f"{ending} {order.step}.{ending}"
            write(pa.concat_tables(pieces[order]), whole)
            for private, rows in ((whole, 7), (folder, 10**5)):
                read_by(rows)
                models = (files[0] / f"{name}.onnx", whole, private, "--model", "one")
                done = labeldp(*models, "--model", "other", "--json", *words.split())
                assert done.exit_code == 0, done.output
                found.setdefault(order.step, []).append(json.loads(done.stdout))
    assert all(one == found[None][0] for one in found[None])
    assert all(one == found[-1][0] for one in found[-1])
    assert close(found[None][0], found[-1][0])
    given = {"by": table["g"]} if "--by" in words else {}
    given |= {"persons": table["who"]} if "--person" in words else {}
    labels = PrivateLabels(files[0] / f"{name}.onnx", table["y"])
    predicted = {model: table[model].to_numpy() for model in ("one", "other")}
    expected = [vars(measured) for measured in evaluate(labels, predicted, **given)]
    for one, other in zip(found[None][0]["measured"], expected, strict=True):
        assert close(one, {k: v if v != float("inf") else None for k, v in other.items()})


def test_a_score_that_is_rounded_widens_the_interval_of_the_area(files, monkeypatch):
    """With more distinct scores than levels; the order of the rows does not matter."""
    table = pq.read_table(files[0] / "binary.parquet")
    y, scores = table["y"].to_numpy(), table["one"].to_numpy()
    orders = (np.arange(ROWS), np.random.default_rng(0).permutation(ROWS))

    def areas(most):
        monkeypatch.setattr(evaluation, "_MOST_LEVELS", most)
        for order in orders:
            labels = PrivateLabels(files[0] / "binary.onnx", y[order])
            yield from evaluate(labels, {"one": scores[order]}, ["AUC"])

    exact, coarse = list(areas(1 << 20)), list(areas(64))
    assert coarse[0].value == pytest.approx(coarse[1].value, rel=1e-9)
    assert coarse[0].value != exact[0].value
    assert coarse[0].low < exact[0].low and exact[0].high < coarse[0].high


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1")])
@pytest.mark.parametrize("rows", [1, 7, 10**5])
def test_later_cells_decide_whether_text_is_labels_or_numbers(read_by, tmp_path, names, rows):
    spec = BINARY.replace('"no"', f'"{names[0]}"').replace('"yes"', f'"{names[1]}"')
    (tmp_path / "a.onnx").write_bytes(compile_text(spec).model)
    given = [*["0"] * 9, *["1"] * 9, "0.5", " 1"]
    private_labels = [names[i % 2] for i in range(len(given))]
    lines = ["y,one,name", *map(",".join, zip(private_labels, given, private_labels, strict=True))]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    read_by(rows)
    table = tmp_path / "x.csv"
    words = (tmp_path / "a.onnx", table, table, "--metric", "log loss", "--json")
    done = labeldp(*words, "--model", "one")
    assert done.exit_code == 0, done.output
    labels = PrivateLabels(tmp_path / "a.onnx", private_labels)
    (expected,) = evaluate(labels, {"one": np.array(given, float)}, ["log loss"])
    assert json.loads(done.stdout)["measured"][0]["value"] == pytest.approx(expected.value)
    named = labeldp(*words, "--model", "name")
    assert named.exit_code == 2 and "predictions are labels" in named.stderr


@pytest.mark.parametrize("broken", ["full disk", "no folder"])
def test_rows_that_cannot_be_held_on_disk_are_one_clear_error(files, monkeypatch, broken):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tables, "_IN_MEMORY", 1)
    if broken == "full disk":
        monkeypatch.setattr("tempfile.SpooledTemporaryFile.write", full)
    else:
        monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/nonexistent"])
        monkeypatch.setattr("tempfile.tempdir", None)
    done = labeldp(*words(files[0], "numbers"))
    assert done.exit_code == 2 and "set TMPDIR" in done.stderr and not done.stdout
    assert len(done.stderr.splitlines()) == 1
