"""Features that are finite as they stand, and not as a model would see them."""

import warnings

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train

from trainer.tests.command import labeldp, written
from trainer.tests.trainer_helpers import CLASSES, table, write_tables

LINEAR = CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]").replace(
    "{kind: mlp, hidden: [8], embedding: 2}", "{kind: linear}"
)
SEEN = {
    "features": LINEAR,
    "splines": LINEAR + "representation: {kind: splines}\n",
    "pca": LINEAR + "representation: {kind: pca, components: all, whiten: false}\n",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("place")
    write_tables(directory, 100)
    for name, text in SEEN.items():
        train(parse_config(text, "t.yaml", directory), directory / "runs" / name)
    return directory


def write(path, value, rows=40):
    """A table with one odd number in the feature ``a``."""
    whole = table(rows, 3)
    numbers = whole["a"].to_numpy().copy()
    numbers[7] = value
    whole = whole.set_column(0, "a", pa.array(numbers))
    (pa_csv.write_csv if path.suffix == ".csv" else pq.write_table)(whole, path)


def refused(directory, *arguments):
    """One line after those of progress, and no warning; nothing is left behind."""
    before = sorted(directory.rglob("*"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = labeldp(*arguments, code=2)
    assert sorted(directory.rglob("*")) == before
    *progress, said = said.splitlines()
    assert said.startswith("labeldp: ") and all(" of " in line for line in progress)
    return said


@pytest.mark.parametrize(("value", "suffix"), [(1.7e308, "parquet"), (-1e39, "csv")])
@pytest.mark.parametrize("seen", SEEN)
def test_predict(place, tmp_path, seen, value, suffix):
    source = tmp_path / f"odd.{suffix}"
    write(source, value)
    arguments = [place / "runs" / seen, source, "-o", tmp_path / "out.csv", "--probabilities"]
    said = refused(tmp_path, "predict", *arguments)
    assert f"odd.{suffix}: 1 of 40 rows have a number in the feature 'a' that is too far" in said
    assert "e+" not in said and "e3" not in said  # the value


@pytest.mark.parametrize("seen", ["features", "pca"])
def test_what_the_model_makes_of_it(tmp_path, seen):
    """float32 holds the feature, and not what a steep model makes of it."""
    write_tables(tmp_path, 100)
    steep = SEEN[seen].replace("{kind: linear}", "{kind: linear, scale: 1000}")
    train(parse_config(steep, "t.yaml", tmp_path), tmp_path / "run")
    source = tmp_path / "odd.parquet"
    write(source, 1e38)
    arguments = [tmp_path / "run", source, "-o", tmp_path / "out.parquet"]
    said = refused(tmp_path, "predict", *arguments)
    assert "no finite number for 1 of 40 rows" in said


@pytest.mark.parametrize(
    ("part", "rows", "words"),
    [
        ("test", 40, "1 of 40 rows have a number in the feature 'a' that is too far"),
        ("train", 100, "the numbers in 'a' are too large"),
    ],
)
def test_a_table_of_a_config(tmp_path, part, rows, words):
    write_tables(tmp_path, 100)
    write(tmp_path / f"{part}.parquet", 1e300, rows)
    said = refused(tmp_path, "train", written(tmp_path, LINEAR), "-o", tmp_path / "run")
    assert f"{part}.parquet: {words}" in said
