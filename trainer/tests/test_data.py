"""Tables, archives and images become arrays, or one message."""

import gzip
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import DataError, parse_config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.data.arrays import read_idx

from trainer.tests.trainer_helpers import CONFIG, table, write_tables


def load(directory, text=CONFIG, columns=("y",)):
    return load_data(parse_config(text, "t.yaml", directory), columns, ("y",))


def error(directory, text=CONFIG):
    with pytest.raises(DataError) as caught:
        load(directory, text)
    return str(caught.value).replace(str(directory), "")


def test_training_statistics_standardise_both_parts(tmp_path):
    write_tables(tmp_path)
    data = load(tmp_path)
    numeric = data.train.features["numeric"]
    assert numeric.dtype == np.float32
    np.testing.assert_allclose(numeric.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(numeric.std(0), 1, atol=1e-5)
    raw = table(600, 0)["a"].to_numpy()
    expected = (table(200, 1)["a"].to_numpy() - raw.mean()) / raw.std()
    np.testing.assert_allclose(data.test.features["numeric"][:, 0], expected, atol=1e-5)
    assert data.shape.vocabularies == (4,)


def test_categories_that_training_lacks_are_out_of_vocabulary(tmp_path):
    write_tables(tmp_path)
    test = table(4, 1).set_column(2, "c", pa.array(["w", "new", None, "u"]))
    pq.write_table(test, tmp_path / "test.parquet")
    assert load(tmp_path).test.features["categorical"][:, 0].tolist() == [3, 0, 0, 1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["3", "1", "4"]).dictionary_encode(),
        pa.array([3.0, 1.0, None], pa.float32()),  # integers with a missing one, by pandas
        pa.array([3.0, 1.0, float("nan")]),
    ],
)
def test_types_of_categories_may_differ(tmp_path, column):
    train = table(6, 0).set_column(2, "c", pa.array([1, 2, 3] * 2, pa.int8()))
    test = table(3, 1).set_column(2, "c", column)
    pq.write_table(train, tmp_path / "train.parquet")
    pq.write_table(test, tmp_path / "test.parquet")
    assert load(tmp_path).test.features["categorical"][:, 0].tolist() == [3, 1, 0]


def test_labels_without_a_class_are_not_quoted():
    with pytest.raises(DataError, match="some labels are none of the 2 classes") as caught:
        Task(("a", "b")).targets(["a", "secret", None], "t", "y")
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError) as other:
        Task(("a", "b")).targets(["a", "b", "c"], "t", "y")
    assert str(other.value) == str(caught.value)  # nor are they counted
    for third in (None, 7):  # a null would make another numpy type of integers
        with pytest.raises(DataError) as caught:
            Task((0, 1)).targets(pa.array([0, 1, third]), "t", "y")
        assert str(caught.value) == str(other.value)
    assert Task((0, 1, 2)).targets(np.array([2.0, 0.0]), "t", "y").tolist() == [2, 0]
    with pytest.raises(DataError, match="use a regression loss"):
        Task((0, 1, 2)).targets(np.array([2.0, 0.7]), "t", "y")
    with pytest.raises(DataError, match="missing, NaN or infinite"):
        Task().targets(np.array([1.0, np.nan]), "t", "y")
    with pytest.raises(DataError, match="does not hold numbers"):
        Task().targets(np.array(["1"]), "t", "y")


NPZ = """
version: 1
name: n
data: {kind: npz, train: a.npz, label: y}
model: {kind: linear}
loss: squared
method: {kind: none}
optimizer: {learning_rate: 0.1}
training: {epochs: 1, batch_size: 1}
"""


def test_npz(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4, 1)
    np.savez(tmp_path / "a.npz", x=pixels, y=np.array([1, 2]))
    data = load(tmp_path, NPZ)
    assert data.shape.image == (3, 4, 1)
    np.testing.assert_allclose(data.train.features, pixels / 255, rtol=1e-6)
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3)), y=np.array([1]))
    assert "2 examples, but 'y' has shape [1]" in error(tmp_path, NPZ)
    np.savez(tmp_path / "a.npz", x=np.full((1, 3), np.nan), y=np.array([1]))
    assert "some features are NaN" in error(tmp_path, NPZ)
    np.savez(tmp_path / "a.npz", features=np.ones((2, 3)), y=np.array([1]))
    assert "has no array 'x'" in error(tmp_path, NPZ)
    np.save(tmp_path / "a.npz.npy", np.ones(3))
    (tmp_path / "a.npz.npy").rename(tmp_path / "a.npz")
    assert "not an .npz archive" in error(tmp_path, NPZ)


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def test_idx(tmp_path):
    images = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(images)))
    (tmp_path / "labels").write_bytes(idx(np.array([1, 0], np.uint8)))
    text = NPZ.replace(
        "{kind: npz, train: a.npz, label: y}",
        "{kind: idx, train: {images: images.gz, labels: labels}, rows: 1}",
    )
    data = load(tmp_path, text, columns=("label",))
    assert data.train.features.shape == (1, 3, 3, 1)
    assert data.train.columns["label"].tolist() == [1]
    (tmp_path / "labels").write_bytes(idx(images)[:-1])
    with pytest.raises(DataError, match="is not an idx file or is incomplete"):
        read_idx(tmp_path / "labels")
    with pytest.raises(DataError, match="does not exist"):
        read_idx(tmp_path / "nothing")


def test_no_more_of_an_idx_file_is_unpacked_than_it_says(tmp_path, monkeypatch):
    seen, read = [], gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda f, n=-1: seen.append(n) or read(f, n))
    (tmp_path / "bomb").write_bytes(gzip.compress(idx(np.zeros(9, np.uint8)) + bytes(1 << 24)))
    with pytest.raises(DataError, match="is not an idx file or is incomplete"):
        read_idx(tmp_path / "bomb")
    assert min(seen) >= 0 and sum(seen) < 1_000
