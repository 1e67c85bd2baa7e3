"""Labels that a file notes as private already are no true ones, for no method and in no part."""

import pyarrow.parquet as pq
import pytest

from trainer.tests.command import labeldp, refused
from trainer.tests.trainer_helpers import CATEGORIES, CLASSES, table, write_artifact, write_tables

TEXT = CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]")
FITTED = "".join(
    line + "\n"
    for line in TEXT.splitlines()
    if not line.startswith(("model", "optimizer", "training"))
)
METHODS = {
    "none": "none",
    "one_release": "one_release, epsilon: 2, delta: 1e-5",
    "pate": "pate, epsilon: 2, delta: 1e-5",
    "lp_mst": "lp_mst, epsilon: 1",
    "alibi": "alibi, epsilon: 1",
    "clusters": "clusters, k: 2, epsilon_prior: 1, epsilon: 1",
    "dp_sgd": "dp_sgd, epsilon: 2, delta: 1e-5",
    "labeldp_pro": "labeldp_pro, denoiser: noop, epsilon: 2, delta: 1e-5",
    "privatized": "privatized, artifact: colours.onnx",
}
CLOSED = ("one_release", "pate")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Tables with true labels, and the same with private ones in their place."""
    directory = tmp_path_factory.mktemp("place")
    write_tables(directory, 100)
    write_artifact(directory, CATEGORIES)
    for part in ("train", "test"):
        randomized(directory, directory / f"{part}.parquet", directory / f"private_{part}.parquet")
    return directory


def randomized(directory, source, output, *options):
    labeldp("randomize", directory / "colours.onnx", source, "-o", output, *options)


def config(kind, **parts):
    text = FITTED if kind in CLOSED else TEXT
    text = text.replace("{kind: none}", "{kind: %s}" % METHODS[kind])  # noqa: UP031  # braces
    for part, name in parts.items():
        text = text.replace(f"{part}: {part}.parquet", f"{part}: {name}")
    return text


@pytest.mark.parametrize("kind", METHODS)
def test_no_method_takes_private_labels_for_true_ones(place, kind):
    said = refused(place, config(kind, train="private_train.parquet"))
    assert "private_train.parquet: 'colour' already holds private labels (of the artifact" in said
    hint = "randomize the table" if kind == "privatized" else "or method privatized"
    assert hint in said


@pytest.mark.parametrize("kind", METHODS)
def test_metrics_are_those_of_true_labels(place, kind):
    said = refused(place, config(kind, test="private_test.parquet"))
    assert "private_test.parquet: 'colour' already holds private labels (of the artifact" in said
    assert "or remove data.test" in said


def test_every_part_of_a_folder_is_looked_at(place, tmp_path):
    write_artifact(tmp_path, CATEGORIES)
    (tmp_path / "parts").mkdir()
    pq.write_table(table(60, 3), tmp_path / "parts" / "a.parquet")
    randomized(tmp_path, place / "train.parquet", tmp_path / "parts" / "b.parquet")
    text = config("none", train="parts").replace("  test: test.parquet\n", "")
    assert "b.parquet: 'colour' already holds private labels" in refused(tmp_path, text)
