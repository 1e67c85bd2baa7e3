"""Finished runs: the baselines in them, their predictions, their place in a table, their export."""

import json
import shutil

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import load_params, parse_config, train
from labeldp_trainer.data import FeatureShape, Task, arrays
from labeldp_trainer.losses import Loss, area_under_curve, constant_metrics
from labeldp_trainer.models import build_model
from labeldp_trainer.outcomes.runs import Run

from trainer.tests.command import labeldp
from trainer.tests.trainer_helpers import (
    CLASSES,
    CONFIG,
    INTEGERS,
    compile_text,
    table,
    write_tables,
)

COLOURS = (
    CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]")
    .replace("name: small", "name: colours")
    .replace("{kind: mlp, hidden: [8], embedding: 2}", "{kind: linear}")
    .replace("{kind: adam, learning_rate: 0.02}", "{learning_rate: 0.5}")
)
PRIVATE = COLOURS.replace("kind: none", "kind: alibi, epsilon: 1.5").replace("colours", "private")
EXPORT = ("export", "--to", "onnx")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Three runs on one table: numbers and classes without privacy, and private classes."""
    directory = tmp_path_factory.mktemp("place")
    write_tables(directory)
    for name, text in (("numbers", CONFIG), ("colours", COLOURS), ("private", PRIVATE)):
        train(parse_config(text, "t.yaml", directory), directory / "runs" / name)
    return directory


def runs(*arguments):
    return json.loads(labeldp("runs", *arguments, "--json"))["runs"]


@pytest.mark.parametrize("exposure", [None, np.array([1, 2, 0.5, 1, 4], np.float32)])
@pytest.mark.parametrize("weights", [None, np.array([3, 1, 1, 8, 0.1], np.float32)])
def test_the_best_constants_are_the_best(exposure, weights):
    y = np.array([0, 0, 1, 3, 10], np.float32)
    for name in ("squared", "absolute", "poisson"):
        loss = Loss(name, Task())
        found = constant_metrics(loss, y, exposure, weights)
        for value in np.linspace(0.05, 12, 200):
            f = np.float32(value) * (np.ones(5, np.float32) if exposure is None else exposure)
            losses = {"squared": 0.5 * (f - y) ** 2, "absolute": abs(f - y)}
            losses["poisson"] = f - y * np.log(f)
            assert found["loss"] <= np.average(losses[name], weights=weights) + 1e-6
            assert found["mse"] <= np.average((f - y) ** 2, weights=weights) + 1e-6
            assert found["mae"] <= np.average(abs(f - y), weights=weights) + 1e-6
    of_classes, weights = Loss("cross_entropy", Task((5, 6, 7))), np.array([2, 1, 1])
    shares = constant_metrics(of_classes, np.array([0, 0, 1, 0]))
    assert shares == pytest.approx(constant_metrics(of_classes, np.array([0, 1, 0]), None, weights))
    assert shares["accuracy"] == 0.75
    assert shares["loss"] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_the_area_counts_pairs_of_rows():
    random = np.random.default_rng(0)
    outputs = random.integers(0, 4, (60, 2)).astype(np.float32)
    targets = (random.random(60) < 0.2).astype(np.int32)
    odds = outputs[:, 1] - outputs[:, 0]
    pairs = odds[targets == 1][:, None] - odds[targets == 0][None, :]
    expected = (pairs > 0).mean() + (pairs == 0).mean() / 2
    assert area_under_curve(outputs, targets) == pytest.approx(expected)
    twice = random.integers(1, 3, 60)
    repeated = area_under_curve(np.repeat(outputs, twice, 0), np.repeat(targets, twice))
    assert area_under_curve(outputs, targets, twice) == pytest.approx(repeated)
    assert area_under_curve(outputs, np.zeros(60, int)) is None
    rare = Loss("cross_entropy", Task(("no", "yes")))
    assert constant_metrics(rare, targets)["auc"] == 0.5
    assert "auc" not in constant_metrics(rare, np.zeros(60, int))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz"])
def test_predictions_are_those_of_the_trained_model(place, tmp_path, suffix):
    """Labels need not be there, nor be in order; all other columns are kept."""
    rows = table(150, 5).drop_columns(["y", "colour"]).select(["id", "c", "b", "a"])
    source = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        pq.write_table(rows, source, row_group_size=60)
    else:
        with pa.output_stream(source) as file:
            pa_csv.write_csv(rows, file)
    output = tmp_path / f"out.{suffix}"
    labeldp("predict", place / "runs" / "numbers", source, "-o", output, "--quiet")
    read = pq.read_table if suffix == "parquet" else pa_csv.read_csv
    found = read(output)
    assert found.column_names == ["id", "c", "b", "a", "prediction"]
    assert found.drop_columns(["prediction"]).equals(read(source))
    y = table(150, 5)["y"].to_numpy()
    mse = np.mean((found["prediction"].to_numpy() - y) ** 2)
    result = json.loads((place / "runs" / "numbers" / "result.json").read_text())
    assert mse < 2 * result["test_mse"]


def test_the_test_metric_comes_out_again(place, tmp_path):
    """Prediction goes the way that training went: encoder, parameters, classes."""
    output = tmp_path / "out.parquet"
    run = place / "runs" / "colours"
    labeldp("predict", run, place / "test.parquet", "-o", output, "--probabilities")
    found = pq.read_table(output)
    names = [f"probability_{c}" for c in ("red", "green", "blue")]
    assert found.column_names[-4:] == ["prediction", *names]
    hits = np.mean(found["prediction"].to_numpy() == found["colour"].to_numpy())
    assert hits == pytest.approx(json.loads((run / "result.json").read_text())["test_accuracy"])
    shares = np.stack([found[name].to_numpy() for name in names], axis=1)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    likeliest = np.array(["red", "green", "blue"])[shares.argmax(axis=1)]
    assert likeliest.tolist() == found["prediction"].to_pylist()
    labeldp("predict", run, place / "test.parquet", "-o", tmp_path / "o.npz", "--probabilities")
    with np.load(tmp_path / "o.npz") as archive:
        assert archive["classes"].tolist() == ["red", "green", "blue"]
        assert archive["prediction"].tolist() == found["prediction"].to_pylist()
        np.testing.assert_array_equal(archive["probabilities"], shares)


def test_archives_and_images(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (60, 5, 4, 1)).astype(np.uint8)
    y = (images.mean(axis=(1, 2, 3)) > 127).astype(np.int64)
    np.savez(tmp_path / "t.npz", x=images, y=y)
    text = """
version: 1
name: images
data: {kind: npz, train: t.npz, classes: 2}
representation: {kind: pca, components: 4}
model: {kind: linear}
loss: cross_entropy
method: {kind: none}
optimizer: {kind: adam, learning_rate: 0.1}
training: {epochs: 1, batch_size: 20}
"""
    train(parse_config(text, "t.yaml", tmp_path), tmp_path / "run")
    for name, order in (("o.npz", "C"), ("o.csv", "C"), ("o.parquet", "F")):
        monkeypatch.setattr(arrays, "_ROWS", 3 if name == "o.csv" else 60)  # at a time
        np.savez(tmp_path / "new.npz", x=np.array(images[:7], order=order))  # without labels
        labeldp("predict", tmp_path / "run", tmp_path / "new.npz", "-o", tmp_path / name)
    with np.load(tmp_path / "o.npz") as archive:
        expected = archive["prediction"].tolist()
    assert pa_csv.read_csv(tmp_path / "o.csv").to_pydict() == {"prediction": expected}
    assert pq.read_table(tmp_path / "o.parquet").to_pydict() == {"prediction": expected}
    labeldp(*EXPORT, tmp_path / "run", "-o", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.run(["prediction"], {"features": images[:7]})[0].tolist() == expected
    np.savez(tmp_path / "wide.npz", x=images[:, :, :3])
    message = labeldp("predict", tmp_path / "run", tmp_path / "wide.npz", "-o", "x.npz", code=2)
    assert "an example has shape [5, 3, 1]; in training it was [5, 4, 1]" in message
    listed = runs(tmp_path / "run")[0]
    assert (listed["representation"], listed["test"]) == ("pca", {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop_columns(["a"]), "has no column 'a'"),
        (lambda t: t.append_column("prediction", t["a"]), "already has a column 'prediction'"),
        (lambda t: t.set_column(0, "a", pa.array([None] * 30, pa.float64())), "no finite number"),
        (lambda t: t.slice(0, 0), "has no rows"),
    ],
)
def test_tables_that_are_refused_leave_nothing(place, tmp_path, change, words):
    pq.write_table(change(table(30, 0)), tmp_path / "t.parquet")
    run, output = place / "runs" / "numbers", tmp_path / "o.parquet"
    assert words in labeldp("predict", run, tmp_path / "t.parquet", "-o", output, code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def damaged(place, tmp_path, name, change):
    """A copy of a run with one file changed (None: without it)."""
    folder = tmp_path / "runs" / f"d{len(list(tmp_path.glob('runs/*')))}"
    shutil.copytree(place / "runs" / "colours", folder)
    path = folder / name
    text = path.read_bytes()
    path.unlink()
    if change is not None:
        path.write_bytes(change(text))
    return folder


CHANGES = {
    "no JSON": ("privacy.json", lambda b: b[: len(b) // 2]),
    "deep JSON": ("result.json", lambda b: b"[" * 100_000),
    "a word for ε": ("privacy.json", lambda b: b.replace(b'"epsilon": null', b'"epsilon": "0"')),
}


def test_runs_beside_their_baselines(place):
    found = {run["name"]: run for run in runs(place / "runs")}
    assert set(found) == {"small", "colours", "private"}
    private, plain = found["private"], found["colours"]
    assert (private["method"], private["epsilon"], private["delta"]) == ("alibi", 1.5, 0.0)
    assert (private["protects"], plain["protects"], plain["epsilon"]) == ("label", None, None)
    assert private["no_privacy"] == plain["test"]["accuracy"] == plain["no_privacy"]
    assert private["same_data"] == plain["same_data"] != found["small"]["same_data"]
    share = max(table(200, 1)["colour"].value_counts().to_pylist(), key=lambda v: v["counts"])
    assert private["constant"]["accuracy"] == share["counts"] / 200
    assert plain["epochs"] == 3 and plain["seconds"] > 0
    lines = labeldp("runs", place / "runs").splitlines()
    assert lines[0].startswith("colour: test accuracy, best first; predict the majority: 0.425")
    assert [line.split()[0] for line in lines[2:5]][-1] == "predict"
    assert any("alibi" in line and " 1.5 " in line and " label " in line for line in lines)
    alone = runs(place / "runs" / "private")[0]  # a run folder itself, and no other
    assert alone["no_privacy"] is None and alone["test"] == private["test"]


@pytest.mark.parametrize("case", CHANGES)
def test_a_damaged_run_is_listed_and_stops_nobody(place, tmp_path, case):
    folder = damaged(place, tmp_path, *CHANGES[case])
    shutil.copytree(place / "runs" / "private", tmp_path / "runs" / "whole")
    found = {run["folder"]: run for run in runs(tmp_path / "runs")}
    assert found[str(tmp_path / "runs" / "whole")]["status"] == "done"
    assert found[str(folder)]["status"] == "damaged" and found[str(folder)]["reason"]
    assert f"damaged: {folder}" in labeldp("runs", tmp_path / "runs")
    arguments = (*EXPORT, folder, "-o", tmp_path / "m.onnx", "--data", place / "test.parquet")
    labeldp(*arguments, code=2)
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("private", b'"epsilon": 1.5', b'"epsilon": 0.5'),
        ("private", b'"epsilon": 1.5', b'"epsilon": NaN'),
        ("private", b'"delta": 0.0', b'"delta": -1.0'),
        ("private", b'"method": "alibi"', b'"method": "dp_sgd"'),
        ("private", b'"unit": "label"', b'"unit": "user"'),
        ("private", b'"details": {', b'"details": [], "d": {'),
        ("colours", b'"epsilon": null', b'"epsilon": 0.1'),
    ],
)
def test_a_promise_of_less_than_the_config_says_is_damage(place, tmp_path, name, old, new):
    folder = tmp_path / "runs" / name
    shutil.copytree(place / "runs" / name, folder)
    path = folder / "privacy.json"
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new))
    (run,) = runs(folder)
    assert run["status"] == "damaged" and run["epsilon"] is None
    arguments = (*EXPORT, folder, "-o", tmp_path / "m.onnx", "--data", place / "test.parquet")
    assert "damaged" in labeldp(*arguments, code=2)  # the model would carry the promise
    assert not (tmp_path / "m.onnx").exists()


def test_a_statement_on_private_labels_agrees_with_its_details(tmp_path):
    """The config has no ε: a statement with another one passed every policy, and was approved."""
    write_tables(tmp_path, 60)
    (tmp_path / "labels.csv").write_text("y\n" + "1\n" * 30)
    spec = INTEGERS.replace("{kind: uniform}", "{kind: private, data: ../labels.csv}")
    spec = spec.replace("epsilon: 3.0", "epsilon: 0.7, split: {prior: 0.1, label: 0.6}")
    compile_text(spec, tmp_path).write(tmp_path)
    method = "privatized, artifact: numbers.onnx"
    text = CONFIG.replace("kind: none", f"kind: {method}").replace("epochs: 3", "epochs: 1")
    run, path = tmp_path / "run", tmp_path / "run" / "privacy.json"
    train(parse_config(text, "t.yaml", tmp_path), run)
    (whole,) = runs(run)
    assert whole["status"] == "done"
    stated = json.loads(path.read_text())
    for less in (stated["epsilon"] - 1e-9, stated["details"]["epsilon_label"], 0.0):
        path.write_text(json.dumps({**stated, "epsilon": less}))
        (found,) = runs(run)
        assert found["status"] == "damaged" and found["epsilon"] is None
    path.write_text(json.dumps({**stated, "epsilon": stated["epsilon"] + 1}))
    assert runs(run)[0]["status"] == "done"
    details = {**stated["details"], "epsilon_prior": -0.5}
    path.write_text(json.dumps({**stated, "epsilon": 0.2, "details": details}))
    assert runs(run)[0]["status"] == "damaged"


def test_an_unfinished_run_is_listed(place, tmp_path):
    folder = damaged(place, tmp_path, "result.json", None)
    (run,) = runs(folder)
    assert (run["status"], run["epochs"]) == ("unfinished", 3)
    (folder / "params.npz").unlink()
    words = ("predict", folder, place / "test.parquet", "-o", tmp_path / "o.csv")
    assert "is not finished; resume it with labeldp train --resume" in labeldp(*words, code=2)


def run_of(**facts):
    known = {
        "label": "rent",
        "method": "staged_release",
        "metric": "mse",
        "test": {"mse": 111889.6},
        "constant": {"mse": 29376.4},
    }
    return Run("r", "done", **known | facts)


def test_a_model_from_python_is_not_rebuilt_from_the_config(place, tmp_path):
    class Doubled:
        def __init__(self, inner):
            self.inner = inner

        def init(self, key):
            return self.inner.init(key)

        def apply(self, params, x, key=None):
            return 2 * self.inner.apply(params, x)

    loaded = parse_config(CONFIG.replace("epochs: 3", "epochs: 1"), "t.yaml", place)
    inner = build_model(loaded, FeatureShape(2, (4,)), 1)
    result = train(loaded, tmp_path / "doubled", model=Doubled(inner))
    words = ("predict", tmp_path / "doubled", place / "test.parquet", "-o", tmp_path / "o.csv")
    assert "was trained with a model from Python" in labeldp(*words, code=2)
    assert load_params(tmp_path / "doubled" / "params.npz", result.params)
