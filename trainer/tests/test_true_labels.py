"""Labels that a file notes as private already are no true ones, for no method and in no part."""

import json

import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.training import read

from labeldp_compile.tabular.provenance import KEY
from trainer.tests.command import labeldp, written
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


def refused(directory, text):
    """The message of the command, which leaves nothing behind."""
    path = written(directory, text)
    before = sorted(directory.rglob("*"))
    said = labeldp("train", path, "-o", directory / "run", code=2)
    assert sorted(directory.rglob("*")) == before and said.count("\n") == 1
    return said


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


def test_private_labels_are_taken_where_they_are_meant(place):
    """With true labels for the metrics; of another column, a note says nothing."""
    method = "privatized, unnoted: true, private_column: colour, %s"
    loaded = []
    for source in ("artifact: colours.onnx", "certificate: colours.certificate.json"):
        text = config("none", train="private_train.parquet")
        text = text.replace("{kind: none}", "{kind: %s}" % (method % source))
        loaded.append(parse_config(text, "t.yaml", place))
        result = train(loaded[-1], place / f"taken{len(loaded)}")
        assert result.statement.epsilon == 1.0
    other = place / "both.parquet"
    randomized(place, place / "train.parquet", other, "--add", "z")
    assert "z" in json.loads(pq.read_schema(other).metadata[KEY])["columns"]
    result = train(parse_config(config("none", train=other.name), "t.yaml", place), place / "other")
    assert result.statement.epsilon is None


def test_a_column_that_is_not_read_is_not_looked_at(place):
    """A release is fitted and verified without a label."""
    loaded = parse_config(config("one_release", train="private_train.parquet"), "t.yaml", place)

    class Builder:
        columns, classes = (), None

    dataset, _ = read(loaded, Builder(), ("colour",))
    assert "colour" not in dataset.train.columns
