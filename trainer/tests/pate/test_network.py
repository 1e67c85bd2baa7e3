"""The part refine of a config: PATE's student is a network on features."""

import json
import shutil

import jax
import numpy as np
import onnxruntime
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.methods.published.pate_network import cut, flipped, shifted

from trainer.tests.command import document, labeldp, written

pytestmark = pytest.mark.slow

IMAGES = """
version: 1
name: images
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
loss: cross_entropy
method: {kind: pate, epsilon: 30, delta: 1e-5, teachers: 10, queries: 20}
refine:
  model: {kind: cnn, variant: mnist}
  optimizer: {kind: adam, learning_rate: 0.02}
  training: {epochs: 4, batch_size: 40}
  shift: 1
"""
SENTENCE = (
    "The final model is a network that was trained on the fitted model's predictions for public "
    "features (refine). It saw no label, so this is post-processing and spends nothing."
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


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images, and a run whose student is a network."""
    directory = tmp_path_factory.mktemp("refine")
    write_images(directory)
    config = written(directory, IMAGES, "images")
    labeldp("train", config, "-o", directory / "runs" / "images", "--quiet")
    return directory


def test_the_final_model_is_the_network(place):
    folder = place / "runs" / "images"
    result = document(folder)
    before, after = result["before_refining"]["accuracy"], result["test"]["accuracy"]
    constant = result["baselines"]["constant"]["accuracy"]
    assert abs(after - before) < 0.3 * abs(constant - before)  # it has learnt most of it
    assert result["before_refining"].keys() == result["test"].keys()
    keys = {"format_version", "before_refining", "epochs", "epoch_of_parameters"}
    tests = {f"test_{name}" for name in result["test"]}
    assert result.keys() - {"notes"} == keys | tests | {"test", "rows_tested", "baselines"}
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == result["epochs"]
    known = {"epoch", "batch_loss", "seconds", "examples_per_second"} | tests
    assert all(set(json.loads(line)) == known for line in lines)


def test_the_statement_says_that_it_costs_nothing(place):
    folder = place / "runs" / "images"
    stated = document(folder, "privacy")
    assert (stated["epsilon"], stated["delta"]) == (30, 1e-5)
    assert stated["statement"].count(SENTENCE) == 1
    assert " ".join((folder / "privacy.txt").read_text().split()).count(SENTENCE) == 1


def test_it_predicts_and_is_exported_without_the_representation(place, tmp_path):
    folder = tmp_path / "images"
    shutil.copytree(place / "runs" / "images", folder)
    shutil.rmtree(folder / "representation")
    data, out, onnx = place / "test.npz", tmp_path / "out.npz", tmp_path / "m.onnx"
    labeldp("predict", folder, data, "-o", out, "--overwrite")
    predicted = arrays(out)["prediction"]
    accuracy = (predicted == arrays(data)["y"]).mean()
    assert accuracy == pytest.approx(document(folder)["test"]["accuracy"])
    labeldp("export", "--to", "onnx", folder, "-o", onnx, "--data", data, "--overwrite")
    session = onnxruntime.InferenceSession(onnx)
    stated = session.get_modelmeta().custom_metadata_map["labeldp.model.privacy"]
    assert SENTENCE in json.loads(stated)["statement"]
    found = session.run(["prediction"], {"features": arrays(data)["x"]})[0]
    assert (found == predicted).mean() > 0.98  # but for ties


def test_a_square_is_cut_out_of_each_image():
    images = np.random.default_rng(0).random((64, 8, 12, 2)).astype(np.float32)
    found = np.asarray(cut(jax.random.key(0), images))
    changed = (found != images).any(axis=3)
    sizes = changed.sum(axis=(1, 2))
    assert sizes.min() >= 4 and sizes.max() == 9  # 3 × 3, less at an edge
    for before, after, where in zip(images, found, changed, strict=True):
        assert np.allclose(after[where], before.mean(axis=(0, 1)), atol=1e-6)
    assert len({where.tobytes() for where in changed}) > 30


def test_consistency_counts_images_that_the_network_is_sure_of(tmp_path, noiseless):
    """FixMatch: with a bound that no probability reaches, nothing is added."""
    write_images(tmp_path)
    losses, text = {}, IMAGES.replace("epochs: 4", "epochs: 2")
    never, often = "  sure: 0.9999999\n", "  sure: 0.4\n"
    for name, line in (("without", ""), ("never", never), ("often", often)):
        train(parse_config(text + line, directory=tmp_path), tmp_path / name)
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        losses[name] = [json.loads(each)["batch_loss"] for each in lines]
    assert losses["never"] == pytest.approx(losses["without"], rel=1e-4)
    assert losses["often"][0] > losses["without"][0]


PATE = "pate, epsilon: 30, delta: 1e-5, teachers: 10, queries: 20"
STEPS = "optimizer: {learning_rate: 1}\ntraining: {epochs: 1, batch_size: 1}\n"
ONLY = (
    ":7: refine: needs method pate; to train a network, use method privatized or dp_sgd with model"
)
WRONG = {
    "another method": (IMAGES.replace(PATE, "alibi, epsilon: 1") + STEPS, ONLY),
    "a batch": (IMAGES.replace("40", "201"), ":10: refine.training.batch_size: 201 is larger"),
    "a shift of all": (IMAGES.replace("shift: 1", "shift: 8"), ":11: refine.shift"),
    "an unknown key": (IMAGES + "  crop: 1\n", "crop"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_said_before_anything_is_spent(place, tmp_path, undrawn, name):
    text, where = WRONG[name]
    said = labeldp("train", written(place, text), "-o", tmp_path / "run", code=2)
    assert where in said and said.count("labeldp: ") == 1
    assert list(tmp_path.iterdir()) == []


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
