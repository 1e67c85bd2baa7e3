"""``refine``: a network learns what a released model says of public features, and no label."""

import json
import os
import shutil
import sys

import jax
import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.augment import cut, flipped, shifted
from labeldp_trainer.methods import one_release
from labeldp_trainer.methods.minibatch import STATEMENT
from labeldp_trainer.one_release import make
from labeldp_trainer.refine import refined_statement

from tests.trainer.command import document, labeldp, written
from tests.trainer.kills import HOLD, TRAIN, kill_behind
from tests.trainer.trainer_helpers import CONFIG, write_artifact, write_tables

IMAGES = """
version: 1
name: images
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
loss: cross_entropy
method: {kind: one_release, epsilon: 8, delta: 1e-5}
refine:
  model: {kind: cnn, variant: mnist}
  optimizer: {kind: adam, learning_rate: 0.02}
  training: {epochs: 4, batch_size: 40}
  shift: 1
"""
TABLE = CONFIG.partition("model:")[0].replace("small", "table")
TABLE += """\
loss: squared
method: {kind: one_release, epsilon: 8, delta: 1e-5, label_range: [1, 8]}
refine:
  model: {kind: mlp, hidden: [8]}
  optimizer: {kind: adam, learning_rate: 0.03, schedule: cosine}
  training: {epochs: 8, batch_size: 50}
"""
SENTENCE = (
    "The final model is a network that was trained on the fitted model's predictions for public "
    "features (refine)"
)


def write_images(directory, count=200):
    """Class y is a bright stripe in row 1, 3 or 5."""
    for name, n, seed in (("train", count, 0), ("test", 80, 1), ("more", 40, 2)):
        random = np.random.default_rng(seed)
        y = random.integers(0, 3, n)
        x = random.integers(0, 60, (n, 8, 8, 1))
        for i in range(3):
            x[y == i, 2 * i + 1] += 150
        labels = {} if name == "more" else {"y": y}
        np.savez(directory / f"{name}.npz", x=x.astype(np.uint8), **labels)


def arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, leaf in one.items():
        np.testing.assert_array_equal(leaf, other[name])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images and a table, and a refined run of each."""
    directory = tmp_path_factory.mktemp("refine")
    write_images(directory)
    write_tables(directory)
    for name, text in (("images", IMAGES), ("table", TABLE)):
        config = written(directory, text, name)
        labeldp("train", config, "-o", directory / "runs" / name, "--quiet")
    return directory


def test_the_final_model_is_the_network(place):
    for name, metric in (("images", "accuracy"), ("table", "mse")):
        folder = place / "runs" / name
        result = document(folder)
        before, after = result["before_refining"][metric], result["test"][metric]
        constant = result["baselines"]["constant"][metric]
        assert abs(after - before) < 0.3 * abs(constant - before)  # it has learnt most of it
        assert result["before_refining"].keys() == result["test"].keys()
        keys = {"format_version", "before_refining", "epochs", "epoch_of_parameters"}
        tests = {f"test_{name}" for name in result["test"]}
        assert result.keys() == keys | tests | {"test", "rows_tested", "baselines"}
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        assert len(lines) == result["epochs"]
        known = {"epoch", "batch_loss", "seconds", "examples_per_second"} | tests
        assert all(set(json.loads(line)) == known for line in lines)


def test_the_statement_says_that_it_costs_nothing(place):
    for name in ("images", "table"):
        folder = place / "runs" / name
        stated = document(folder, "privacy")
        assert (stated["epsilon"], stated["delta"]) == (8, 1e-5)
        sentence = f"{SENTENCE}; it saw no label, so this is post-processing and costs no ε."
        assert stated["statement"].count(sentence) == 1
        assert " ".join((folder / "privacy.txt").read_text().split()).count(sentence) == 1
    text = TABLE.replace("one_release, epsilon: 8, delta: 1e-5, label_range: [1, 8]", "none")
    said = refined_statement(parse_config(text), STATEMENT).paragraph()
    assert f"{SENTENCE}." in said and "costs no" not in said


def test_it_predicts_and_is_exported_without_the_representation(place, tmp_path):
    for name, suffix in (("images", "npz"), ("table", "parquet")):
        folder = tmp_path / name
        shutil.copytree(place / "runs" / name, folder)
        shutil.rmtree(folder / "representation")
        data, out, onnx = place / f"test.{suffix}", tmp_path / "out.npz", tmp_path / "m.onnx"
        labeldp("predict", folder, data, "-o", out, "--overwrite")
        predicted = arrays(out)["prediction"]
        if name == "images":
            accuracy = (predicted == arrays(data)["y"]).mean()
            assert accuracy == pytest.approx(document(folder)["test"]["accuracy"])
        else:
            assert len(set(predicted)) > 10 and predicted.min() >= 1 and predicted.max() <= 8
        labeldp("export", folder, "-o", onnx, "--data", data, "--overwrite")
        session = onnxruntime.InferenceSession(onnx)
        metadata = session.get_modelmeta().custom_metadata_map
        assert SENTENCE in metadata["labeldp.model.privacy"]
        if name == "images":
            found = session.run(["prediction"], {"features": arrays(data)["x"]})[0]
            assert (found == predicted).mean() > 0.98  # but for ties


def test_runs_names_the_network_and_compares_it(place):
    runs = json.loads(labeldp("runs", place / "runs", "--json"))["runs"]
    found = {run["name"]: run for run in runs}
    assert found["images"]["model"] == "cnn" and found["table"]["model"] == "mlp"
    for name, metric in (("images", "accuracy"), ("table", "mse")):
        assert found[name]["test"][metric] == document(place / "runs" / name)["test"][metric]


def test_a_network_that_is_worse_than_what_it_learnt_from_is_named(place, tmp_path):
    text = TABLE.replace("epochs: 8", "epochs: 1").replace("0.03", "0.00001")
    release = place / "runs" / "table" / "release.npz"
    result = train(parse_config(text, "short.yaml", place), tmp_path / "run", release=release)
    assert result.notes[-1].startswith("refining made the model worse: test loss")


def test_no_label_is_read(place, tmp_path, monkeypatch):
    """The same release without training labels gives the same network."""
    monkeypatch.setattr(make, "noisy", None)  # nothing is drawn
    train = pq.read_table(place / "train.parquet")
    pq.write_table(train.drop_columns(["y", "colour"]), tmp_path / "train.parquet")
    shutil.copy(place / "test.parquet", tmp_path)
    run = place / "runs" / "table"
    config, options = written(tmp_path, TABLE), ("--from-release", run / "release.npz")
    labeldp("train", config, "-o", tmp_path / "run", *options)
    assert_same(arrays(tmp_path / "run" / "params.npz"), arrays(run / "params.npz"))


def test_further_rows_are_learnt_from_if_the_representation_was_allowed_to(place, tmp_path):
    for name in ("train.npz", "test.npz", "more.npz"):
        shutil.copy(place / name, tmp_path)
    sources = {"[]": 200, "[more.npz]": 240, "[test]": 280, "[more.npz, test]": 320}
    for number, (listed, rows) in enumerate(sources.items()):
        text = f"{IMAGES}representation: {{kind: pca, unlabelled: {listed}}}\n"
        text = text.replace("epochs: 4", "epochs: 1").replace("cnn, variant: mnist", "mlp")
        small, large = (text.replace("size: 40", f"size: {n}") for n in (rows, rows + 1))
        said = labeldp("train", written(tmp_path, large), "-o", tmp_path / "no", code=2)
        assert f"refine.training.batch_size: {rows + 1} is larger than the {rows} exam" in said
        assert not (tmp_path / "no").exists()
        if listed == "[more.npz, test]":
            labeldp("train", written(tmp_path, small), "-o", tmp_path / f"run{number}", "--quiet")


def test_counts_and_private_labels(place, tmp_path):
    counts = TABLE.replace("squared", "poisson").replace("[1, 8]", "[0, 9]")
    labeldp("train", written(place, counts), "-o", tmp_path / "counts")
    onnx = tmp_path / "counts.onnx"
    labeldp("export", tmp_path / "counts", "-o", onnx, "--data", place / "test.parquet")
    write_artifact(place)
    text = TABLE.replace(
        "one_release, epsilon: 8, delta: 1e-5, label_range: [1, 8]",
        "privatized, artifact: numbers.onnx",
    )
    labeldp("train", written(place, text), "-o", tmp_path / "private")
    for name, metric in (("counts", "loss"), ("private", "mse")):
        result = document(tmp_path / name)
        before, after = result["before_refining"][metric], result["test"][metric]
        assert abs(after - before) < 0.3 * (result["baselines"]["constant"][metric] - before)
        assert f"{SENTENCE}; it saw no label" in document(tmp_path / name, "privacy")["statement"]


def test_a_square_is_cut_out_of_each_image():
    images = np.random.default_rng(0).random((64, 8, 12, 2)).astype(np.float32)
    found = np.asarray(cut(jax.random.key(0), images))
    changed = (found != images).any(axis=3)
    sizes = changed.sum(axis=(1, 2))
    assert sizes.min() >= 4 and sizes.max() == 9  # 3 × 3, less at an edge
    for before, after, where in zip(images, found, changed, strict=True):
        assert np.allclose(after[where], before.mean(axis=(0, 1)), atol=1e-6)
    assert len({where.tobytes() for where in changed}) > 30


def test_consistency_counts_images_that_the_network_is_sure_of(tmp_path):
    """FixMatch: with a bound that no probability reaches, nothing is added."""
    write_images(tmp_path)
    losses, text = {}, IMAGES.replace("epochs: 4", "epochs: 2")
    never, often = "  sure: 0.9999999\n", "  sure: 0.4\n"
    for name, line in (("without", ""), ("never", never), ("often", often)):
        release = tmp_path / "without" / "release.npz" if line else None
        config = parse_config(text + line, directory=tmp_path)
        train(config, tmp_path / name, release=release)
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        losses[name] = [json.loads(each)["batch_loss"] for each in lines]
    assert losses["never"] == pytest.approx(losses["without"], rel=1e-4)
    assert losses["often"][0] > losses["without"][0]


def test_kill_and_resume(place, tmp_path, monkeypatch):
    for name in ("train.parquet", "test.parquet"):
        shutil.copy(place / name, tmp_path)
    config, cut, whole = written(tmp_path, TABLE), tmp_path / "cut", place / "runs" / "table"
    options = ["-o", str(cut), "--quiet", "--from-release", str(whole / "release.npz")]
    held = [sys.executable, "-c", f"{HOLD}hold('cut', 2){TRAIN}", str(config), *options]
    kill_behind(2, cut / "metrics.jsonl", held, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    kept = {name: (cut / name).read_bytes() for name in ("release.npz", "fitted.npz")}
    assert not (cut / "result.json").exists()
    monkeypatch.setattr(make, "noisy", None)  # nothing is drawn or fitted again
    monkeypatch.setattr(one_release, "fitted_release", None)
    labeldp("train", config, "-o", cut, "--resume", "--quiet")
    assert kept == {name: (cut / name).read_bytes() for name in kept}
    assert_same(arrays(cut / "params.npz"), arrays(whole / "params.npz"))
    assert document(cut) == document(whole)


def given(text, old, new):
    assert old in text
    return text.replace(old, new)


RELEASE = "one_release, epsilon: 8, delta: 1e-5"
STEPS = "optimizer: {learning_rate: 1}\ntraining: {epochs: 1, batch_size: 1}\n"
WRONG = {
    "another method": (given(IMAGES, RELEASE, "alibi, epsilon: 1") + STEPS, ":7: refine"),
    "no closed form": (
        given(IMAGES, RELEASE, "none") + STEPS + "model: {kind: linear}\n",
        ":7: refine",
    ),
    "a network for images": (
        given(TABLE, "mlp, hidden: [8]", "cnn, variant: mnist"),
        "refine.model.kind: cnn needs images",
    ),
    "no model": (given(IMAGES, "  model: {kind: cnn, variant: mnist}\n", ""), "refine.model"),
    "a batch": (given(IMAGES, "40", "201"), ":10: refine.training.batch_size: 201 is larger"),
    "shifts of rows": (TABLE + "  shift: 1\n", "refine.shift: is for images"),
    "consistency of rows": (TABLE + "  sure: 0.9\n", "refine.sure: is for classes"),
    "consistency of no images": (
        given(TABLE, "loss: squared", "loss: cross_entropy")
        .replace("label: y", "label: y\n  classes: 10")
        .replace(", label_range: [1, 8]", "")
        + "  sure: 0.9\n",
        "refine.sure: is for images",
    ),
    "a probability of 1": (IMAGES + "  sure: 1\n", "refine.sure"),
    "mirrored rows": (TABLE + "  flip: true\n", "refine.flip: is for images"),
    "a shift of all": (given(IMAGES, "shift: 1", "shift: 8"), ":11: refine.shift"),
    "a shift back": (given(IMAGES, "shift: 1", "shift: -1"), ":11: refine.shift"),
    "an optimizer": (given(IMAGES, "kind: adam", "kind: lion"), ":9: refine.optimizer.kind"),
    "no rate": (given(IMAGES, ", learning_rate: 0.02", ""), "refine.optimizer.learning_rate"),
    "no epoch": (given(IMAGES, "epochs: 4", "epochs: 0"), ":10: refine.training.epochs"),
    "a size of its own": (given(TABLE, "[8]}", "[8], offset: 4}"), ":14: refine.model.offset"),
    "an unknown key": (IMAGES + "  crop: 1\n", "crop"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_said_before_anything_is_spent(place, tmp_path, monkeypatch, name):
    monkeypatch.setattr(make, "noisy", None)
    text, where = WRONG[name]
    said = labeldp("train", written(place, text), "-o", tmp_path / "run", code=2)
    assert where in said and said.count("labeldp: ") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_rate_that_is_too_large_names_its_key_and_keeps_the_release(place, tmp_path):
    text = given(
        TABLE, "{kind: adam, learning_rate: 0.03, schedule: cosine}", "{learning_rate: 1e30}"
    )
    said = labeldp("train", written(place, text), "-o", tmp_path / "run", code=2)
    assert "lower refine.optimizer.learning_rate" in said
    assert (tmp_path / "run" / "release.npz").exists()


def test_images_are_moved_and_mirrored():
    images = np.random.default_rng(0).random((64, 4, 5, 2), np.float32)
    moved = np.asarray(shifted(jax.random.key(0), images, 2))
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)), "edge")
    seen = set()
    for before, after in zip(padded, moved, strict=True):
        places = [(i, j) for i in range(5) for j in range(5)]
        where = [p for p in places if (before[p[0] : p[0] + 4, p[1] : p[1] + 5] == after).all()]
        assert len(where) == 1
        seen.add(where[0])
    assert {i for i, _ in seen} == {j for _, j in seen} == set(range(5))
    mirrored = np.asarray(flipped(jax.random.key(0), images))
    same = (mirrored == images).all(axis=(1, 2, 3))
    assert 16 < same.sum() < 48
    np.testing.assert_array_equal(mirrored[~same], images[~same][:, :, ::-1])
