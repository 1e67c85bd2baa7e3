"""A label in the place of something public: features, users, ids, vectors of rows."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import ConfigError, DataError, parse_config, train

from trainer.tests.trainer_helpers import CONFIG, INTEGERS, write_artifact, write_tables

NPZ = """
version: 1
name: small
data: {kind: npz, train: t.npz, features: FEATURES, label: y}
loss: squared
method: {kind: METHOD}
representation: {kind: file, train: v.npz, array: ARRAY}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NPZ.replace("FEATURES", "y"), "data.features: is the label"),
        (NPZ.replace("ARRAY", "y"), "representation.array: is the label"),
        (
            NPZ.replace("METHOD", "privatized, artifact: a, column: z").replace("ARRAY", "z"),
            "representation.array: is the label",
        ),
        (
            NPZ.replace("METHOD", "privatized, artifact: a, column: z").replace("FEATURES", "z"),
            "method.column: is also a feature",
        ),
        (
            NPZ.replace("METHOD", "one_release, epsilon: 1, delta: 1e-5, label_range: [0, 1]"),
            None,
        ),
    ],
)
def test_arrays(text, expected):
    rest = {"FEATURES": "x", "ARRAY": "vectors", "METHOD": "none"}
    for word, name in rest.items():
        text = text.replace(word, name)
    if expected is None:
        parse_config(text)
        return
    with pytest.raises(ConfigError) as error:
        parse_config(text)
    assert expected in "\n".join([str(error.value), *getattr(error.value, "__notes__", [])])


@pytest.fixture
def place(tmp_path):
    """Tables with a private column ``z`` beside the true label ``y``, and the artifact."""
    write_tables(tmp_path, 100)
    write_artifact(tmp_path, INTEGERS)
    for part in ("train", "test"):
        path = tmp_path / f"{part}.parquet"
        table = pq.read_table(path)
        private = table["y"].cast(pa.float64())
        pq.write_table(table.append_column("z", private).append_column("t", table["y"]), path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "change", "expected"),
    [
        (", private_column: z", ("[a, b]", "[a, y]"), "data.numeric: 'y' is the label of"),
        (", private_column: z", ("[c]", "[c, y]"), "data.categorical: 'y' is the label of"),
        (", private_column: z", ("[c]", "[c]\n  dates: [y]"), "data.dates: 'y' is the label of"),
        (", column: t", ("[c]", "[c]\n  dates: [y]"), "data.dates: 'y' is the label of"),
        (", column: t", ("[a, b]", "[a, y]"), "data.numeric: 'y' is the label of"),
        (
            ", private_column: z, user_column: y, max_examples_per_user: 2",
            ("[a, b]", "[a]"),
            "method.user_column: 'y' is the label of",
        ),
    ],
)
def test_the_label_that_an_artifact_was_compiled_for(place, options, change, expected):
    method = f"{{kind: privatized, artifact: numbers.onnx{options}}}"
    text = CONFIG.replace("{kind: none}", method).replace("label: y", "label: z")
    assert change[0] in text
    with pytest.raises(ConfigError) as error:
        train(parse_config(text.replace(*change), "config", place), place / "run")
    assert expected in str(error.value) and not (place / "run").exists()


SAME = "is also in the training part; metrics on its true labels would disclose them"


@pytest.mark.parametrize("test", ["train.parquet", "./train.parquet", "link.parquet", "parts"])
def test_metrics_on_the_training_labels(place, test):
    """result.json would have the shares of the true classes, without noise."""
    (place / "link.parquet").symlink_to("train.parquet")
    (place / "parts").mkdir()
    (place / "parts" / "0.parquet").hardlink_to(place / "train.parquet")
    method = "{kind: one_release, epsilon: 1, delta: 1e-5, label_range: [0, 9]}"
    text = CONFIG[: CONFIG.index("model:")] + f"loss: squared\nmethod: {method}\n"
    text = text.replace("test.parquet", test)
    with pytest.raises(DataError) as error:
        train(parse_config(text, "config", place), place / "run")
    assert SAME in str(error.value) and not (place / "run").exists()


def test_metrics_on_labels_that_nothing_protects(place):
    """Without privacy, and of another column than the one that is randomized."""
    text = CONFIG.replace("test.parquet", "train.parquet").replace("epochs: 3", "epochs: 1")
    train(parse_config(text, "config", place), place / "run")
    text = text.replace("{kind: none}", "{kind: privatized, artifact: numbers.onnx, column: y}")
    train(parse_config(text.replace("label: y", "label: t"), "config", place), place / "other")
    with pytest.raises(DataError, match=SAME):
        train(parse_config(text, "config", place), place / "same")


@pytest.mark.parametrize("labels", ["labels", "others"])
def test_images_with_the_training_labels(tmp_path, labels):
    images, one = np.zeros((20, 2, 2), np.uint8), np.arange(20, dtype=np.uint8) % 2
    images[:, 0, 0] = np.arange(20)
    for name, array in {"images": images, "more": images + 1, "labels": one, "others": one}.items():
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (tmp_path / name).write_bytes(head + array.tobytes())
    text = f"""
version: 1
name: small
data:
  kind: idx
  train: {{images: images, labels: labels}}
  test: {{images: more, labels: {labels}}}
  classes: 2
loss: cross_entropy
method: {{kind: one_release, epsilon: 1, delta: 1e-5}}
representation: {{kind: random_fourier, features: 4}}
"""
    config = parse_config(text, "config", tmp_path)
    if labels == "others":
        train(config, tmp_path / "run")
        return
    with pytest.raises(DataError, match=SAME):
        train(config, tmp_path / "run")
