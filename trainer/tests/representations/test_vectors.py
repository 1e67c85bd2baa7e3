"""What a representation makes of features: whitened, the same for a batch, blind to labels."""

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

from trainer.tests.representations.representation_helpers import (
    PATCHES,
    TABLE,
    images,
    vectors,
    write_images,
)
from trainer.tests.trainer_helpers import write_tables

OF_IMAGES = (
    PATCHES,
    "{kind: pca, components: 5}",
    "{kind: random_fourier, features: 30, components: 6}",
    "{kind: scattering, components: 20}",
    "{kind: scattering, orders: 1, scales: 1, angles: 3, pool: 2, components: 9}",
    "{kind: graph, of: pca, neighbours: 4, dims: 5}",
    "{kind: graph, of: {kind: scattering, angles: 4}, dims: 6, landmarks: 50}",
)
JOINED = "{kind: joined, of: [pca, {kind: graph, of: pca, dims: 5}]}"
OF_TABLES = (
    "{kind: pca}",
    "{kind: splines, knots: 3}",
    "{kind: splines, whiten: false}",
    "{kind: random_fourier, features: 20, components: all, whiten: false}",
    "{kind: graph, of: {kind: splines, knots: 3}, dims: 8, components: 5}",
)


def write_all(directory):
    write_images(directory, side=8)
    write_tables(directory, rows=120)


def cases():
    from trainer.tests.representations.representation_helpers import IMAGES

    return [(IMAGES, one) for one in OF_IMAGES] + [(TABLE, one) for one in OF_TABLES]


@pytest.mark.parametrize(("text", "representation"), cases())
def test_whitened_and_the_same_for_a_batch(tmp_path, text, representation):
    write_all(tmp_path)
    before, after, learnt = vectors(tmp_path, representation, text)
    train, test = after.train.features, after.test.features
    assert train.dtype == test.dtype == np.float32
    assert train.shape == (120, learnt.width)
    assert after.shape.numeric == learnt.width
    assert not after.shape.vocabularies
    assert after.digest() == before.digest()  # that of the input features
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-3)
    if "whiten: false" not in representation:
        np.testing.assert_allclose(np.cov(train.T, bias=True), np.eye(learnt.width), atol=2e-3)
    elif "all" in representation:
        assert learnt.spectrum is None
        np.testing.assert_allclose(train.std(0), 1, atol=1e-3)
    else:
        np.testing.assert_allclose(train.var(0), learnt.spectrum, rtol=1e-3)
    if learnt.spectrum is not None:
        assert len(learnt.spectrum) == learnt.width
        assert (np.diff(learnt.spectrum) <= 0).all()
    for part, stored in ((before.train, train), (before.test, test)):
        batch = jax.tree.map(lambda leaf: leaf[3:10], part.features)
        found = jax.jit(learnt.apply)(batch)
        np.testing.assert_allclose(found, stored[3:10], atol=2e-3)


@pytest.mark.parametrize("representation", [*OF_IMAGES, JOINED])
def test_no_label_enters(tmp_path, representation):
    write_images(tmp_path, side=8)
    _, first, learnt = vectors(tmp_path, representation)
    for name, rows, seed in (("train", 120, 0), ("test", 40, 1)):
        x, y = images(rows, seed, side=8)
        np.savez(tmp_path / f"{name}.npz", x=x, y=np.random.default_rng(5).permutation(y))
    _, second, learnt_again = vectors(tmp_path, representation)
    for name, array in learnt.arrays.items():
        assert array.tobytes() == learnt_again.arrays[name].tobytes(), name
    np.testing.assert_array_equal(first.train.features, second.train.features)
    np.testing.assert_array_equal(first.test.features, second.test.features)


def test_answers_of_patches_by_hand(tmp_path):
    """Raw vectors from the definition: normalise, project, ReLU, pool, square root; colours."""
    write_images(tmp_path, rows=60, channels=3)
    before, _, learnt = vectors(tmp_path, PATCHES)
    x = before.train.features[0].astype(np.float64)
    kernel = np.asarray(learnt.arrays["kernel"], np.float64).reshape(27, 6)
    answers = np.zeros((4, 4, 6))
    for i in range(4):
        for j in range(4):
            patch = x[i : i + 3, j : j + 3].ravel()
            normalised = (patch - patch.mean()) / np.sqrt(patch.var() + 10 / 255**2)
            answers[i, j] = np.maximum(normalised @ kernel + learnt.arrays["bias"], 0)
    means = answers.reshape(2, 2, 2, 2, 6).mean((1, 3)).reshape(-1)
    found = (np.sqrt(means) - learnt.arrays["mean"]) @ learnt.arrays["projection"]
    np.testing.assert_allclose(learnt.apply(before.train.features[:1])[0], found, atol=2e-3)


def test_ramps_are_linear_between_knots(tmp_path):
    write_tables(tmp_path, rows=300)
    before, after, _ = vectors(
        tmp_path, "{kind: splines, knots: 4, components: all, whiten: false}", TABLE
    )
    a = before.train.features["numeric"][:, 0].astype(np.float64)
    knots = np.quantile(a, np.linspace(0, 1, 6), method="nearest")
    for column in after.train.features.T[:5]:
        inside = np.unique(column[(column > column.min()) & (column < column.max())])
        assert len(inside) > 30
    # A function that is linear between the knots is a sum of them.
    target = np.interp(a, knots, [0, 3, -1, 2, 2, 5])
    design = np.column_stack([after.train.features[:, :5], np.ones(300)])
    left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    assert np.abs(left).max() < 1e-4


def test_heavy_values_and_rare_categories(tmp_path):
    write_tables(tmp_path, rows=300)
    rows = pq.read_table(tmp_path / "train.parquet").to_pydict()
    rows["a"] = [0.0] * 280 + [float(k) for k in range(20)]
    rows["b"] = [7.0] * 300
    rows["c"] = ["u"] * 291 + [f"rare {k}" for k in range(9)]
    import pyarrow as pa

    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    _, after, learnt = vectors(
        tmp_path, "{kind: splines, knots: 8, components: all, whiten: false}", TABLE
    )
    assert learnt.facts["raw_width"] == 9 + 2  # ramps of a; u, and all others
    assert any("'b'" in note for note in learnt.notes)
    assert np.isfinite(after.test.features).all()


def test_unlabelled_rows_are_learnt_from(tmp_path):
    write_images(tmp_path)
    with np.load(tmp_path / "more.npz") as archive:
        np.savez(tmp_path / "more.npz", x=archive["x"])  # there are no labels
    _, plain, _ = vectors(tmp_path, PATCHES)
    _, after, learnt = vectors(tmp_path, PATCHES.replace("}", ", unlabelled: [more.npz, test]}"))
    assert learnt.facts["rows"] == 120 + 30 + 40
    assert learnt.facts["learnt_from_test"]
    assert [source["rows"] for source in learnt.facts["unlabelled"]] == [30]
    (note,) = learnt.notes
    assert "more.npz (30 rows), the test part" in note
    assert np.abs(plain.train.features - after.train.features).max() > 0.01


def test_vectors_of_a_file(tmp_path):
    write_images(tmp_path)
    random = np.random.default_rng(0)
    for name, rows in (("a", 120), ("b", 40)):
        np.savez(tmp_path / f"{name}.npz", embeddings=random.normal(size=(rows, 5)) @ TURN)
    _, after, learnt = vectors(tmp_path, "{kind: file, train: a.npz, test: b.npz}")
    assert learnt.width == 5
    np.testing.assert_allclose(np.cov(after.train.features.T, bias=True), np.eye(5), atol=1e-3)
    with np.load(tmp_path / "b.npz") as archive:
        given = archive["embeddings"].astype(np.float32)
    np.testing.assert_allclose(learnt.apply(given), after.test.features, atol=1e-3)


TURN = np.random.default_rng(3).normal(size=(5, 5))


def test_a_row_beside_many_equal_ones_stays_in_the_graph(tmp_path):
    random = np.random.default_rng(1)
    x = random.normal(size=(120, 3))
    x[:50], x[119] = 1, (1.6, 1, 1)  # its neighbours are equal, and so near one another
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, y=np.arange(120) % 3)
    _, after, _ = vectors(tmp_path, "{kind: graph, of: pca, neighbours: 4, dims: 5}")
    assert np.isfinite(after.train.features).all()
    np.testing.assert_allclose(after.train.features[:50].std(0), 0, atol=1e-3)
