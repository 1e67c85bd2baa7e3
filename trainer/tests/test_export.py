"""Exported models are the trained ones: every model, every representation, every kind of input."""

import dataclasses
import json

import jax
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import DataError, parse_config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.export.onnx.model import check, onnx_model
from labeldp_trainer.losses import Loss
from labeldp_trainer.models import build_model
from labeldp_trainer.outcomes.predict import Trained
from labeldp_trainer.representations import represented
from labeldp_trainer.run import RunFolder
from labeldp_verify import check_bytes

from trainer.tests.trainer_helpers import table

ROWS = 40
PRIVACY = {"format_version": "1.0", "epsilon": 0.5, "statement": "(ε = 0.5)-label-DP"}
TABLE = "{kind: table, train: t.parquet, label: y, numeric: [a, b], categorical: [c]}"
IMAGES = "{kind: npz, train: images.npz}"
FLAT = "{kind: npz, train: flat.npz}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Tables, images of bytes and of floats, flat arrays; and the statement of a run."""
    directory = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    some = table(ROWS, 0)
    gaps = pa.array([None if i % 7 == 0 else c for i, c in enumerate(some["c"].to_pylist())])
    pq.write_table(some.set_column(2, "c", gaps), directory / "t.parquet")
    y = np.arange(ROWS) % 3
    bytes_ = random.integers(0, 256, (ROWS, 11, 14, 2)).astype(np.uint8)
    np.savez(directory / "images.npz", x=bytes_, y=y)
    np.savez(directory / "floats.npz", x=random.normal(size=(ROWS, 11, 14, 2)), y=y)
    np.savez(directory / "flat.npz", x=random.normal(3, 2, (ROWS, 5)), y=y)
    (directory / "privacy.json").write_text(json.dumps(PRIVACY), encoding="utf-8")
    return directory


def trained(place, data, model="{kind: linear}", loss="squared", representation=None, classes=None):
    """A run with parameters that nobody trained, drawn so that none of them is 0."""
    more = "" if representation is None else f"representation: {representation}\n"
    text = (
        f"version: 1\nname: made\ndata: {data}\n{more}model: {model}\nloss: {loss}\n"
        "method: {kind: none}\noptimizer: {learning_rate: 0.1}\n"
        "training: {epochs: 1, batch_size: 4}\n"
    )
    loaded = parse_config(text, "t.yaml", place)
    dataset = load_data(loaded, ("y",), ("y",))
    learnt, shape = None, dataset.shape
    if representation is not None:
        represented_data, learnt = represented(loaded, dataset, place / "run")
        shape = represented_data.shape
    task = Task(classes)
    made = build_model(loaded, shape, task.outputs)
    like = jax.eval_shape(made.init, jax.random.key(0))
    random = np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: random.normal(0, 0.3, leaf.shape).astype(np.float32), like)
    run = RunFolder(place)
    return Trained(run, loaded, dataset.encoder, Loss(loss, task), learnt, made, params)


def require_same(found):
    model = onnx_model(found)
    result = check(found, model)
    assert result.rows == ROWS and result.relative < 1e-4
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("data", "model"),
    [
        (TABLE, "{kind: linear}"),
        (TABLE, "{kind: mlp, hidden: [6, 5], embedding: 3, scale: 2, offset: 7}"),
        (TABLE.replace("[a, b]", "[]"), "{kind: mlp, hidden: [4], embedding: 2}"),
        (TABLE.replace("[c]", "[]"), "{kind: mlp, hidden: []}"),
        (FLAT, "{kind: linear, offset: 1}"),
        (IMAGES, "{kind: linear}"),
        (IMAGES, "{kind: cnn, variant: mnist}"),
        (IMAGES, "{kind: cnn, variant: cifar}"),
        pytest.param(
            IMAGES.replace("images", "floats"),
            "{kind: resnet18, width: 4, groups: 2}",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_models(place, data, model):
    require_same(trained(place, data, model))


@pytest.mark.parametrize(
    ("data", "representation"),
    [
        (IMAGES, "{kind: patches, patches: 7, size: 3, pool: 2, components: 9}"),
        (IMAGES, "{kind: pca, components: 6}"),
        (FLAT, "{kind: pca, components: all, whiten: false}"),
        (TABLE, "{kind: pca}"),
        (TABLE, "{kind: random_fourier, features: 12}"),
        (TABLE, "{kind: splines, knots: 3, min_count: 1}"),
        (TABLE, "{kind: splines, knots: 2, min_count: 1}"),
        (TABLE, "{kind: splines, knots: 0, min_count: 2}"),
        (FLAT, "{kind: file, train: flat.npz, array: x}"),
        (IMAGES, "{kind: scattering, angles: 4, components: 20}"),
        (IMAGES.replace("images", "floats"), "{kind: scattering, orders: 1}"),
        pytest.param(
            IMAGES,
            "{kind: graph, of: scattering, neighbours: 4, dims: 6}",
            marks=pytest.mark.slow,
        ),
        (TABLE, "{kind: graph, of: {kind: splines, knots: 3, min_count: 1}, dims: 4}"),
        (
            FLAT,
            "{kind: joined, of: [{kind: file, train: flat.npz, array: x}, {kind: graph, of: "
            "{kind: file, train: flat.npz, array: x}, dims: 4}]}",
        ),
        (IMAGES, "{kind: joined, of: [pca, {kind: graph, of: pca, neighbours: 3, dims: 5}]}"),
    ],
)
def test_representations(place, data, representation):
    require_same(trained(place, data, "{kind: mlp, hidden: [6]}", representation=representation))


def feeds_of(rows):
    some = table(rows, 3)
    columns = {name: some[name].to_numpy().astype(np.float64) for name in ("a", "b")}
    return {**columns, "c": np.array(some["c"].to_pylist(), dtype=object)}


@pytest.mark.parametrize("classes", [("red", "green", "blue"), (7, 8, 9), (1, "x", 2)])
def test_classes_and_any_number_of_rows(place, classes):
    found = trained(place, TABLE, loss="cross_entropy", classes=classes)
    session = require_same(found)
    assert [i.name for i in session.get_inputs()] == ["a", "b", "c"]
    for rows in (1, 3, 50):
        prediction, shares = session.run(["prediction", "probabilities"], feeds_of(rows))
        assert prediction.shape == (rows,) and shares.shape == (rows, 3)
        expected = [classes[i] for i in shares.argmax(axis=1)]
        are_numbers = all(isinstance(c, int) for c in classes)
        assert prediction.tolist() == (expected if are_numbers else list(map(str, expected)))
    everything = session.run(None, feeds_of(50))[1]
    one_by_one = [
        session.run(None, {k: v[i : i + 1] for k, v in feeds_of(50).items()})[1] for i in range(50)
    ]
    np.testing.assert_allclose(np.concatenate(one_by_one), everything, atol=1e-6)


def test_the_statement_is_in_the_metadata(place):
    model = onnx.load_from_string(onnx_model(trained(place, TABLE)))
    found = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(found["labeldp.model.privacy"]) == PRIVACY
    assert found["labeldp.model.name"] == "made"
    assert "labeldp.certificate" not in found  # it is no randomizer
    last = check_bytes(model.SerializeToString()).checks[-1]
    assert not last.ok and "a trained model of labeldp export" in last.detail
    assert onnx_model(trained(place, TABLE)) == onnx_model(trained(place, TABLE))


def test_a_model_that_differs_is_refused(place):
    found = trained(place, TABLE)
    larger = jax.tree.map(lambda leaf: leaf * np.float32(1.01), found.params)
    model = onnx_model(dataclasses.replace(found, params=larger))
    with pytest.raises(DataError, match=r"differs from the trained one by 0\.0[01].*nothing"):
        check(found, model)
