"""``labeldp randomize`` where private labels are numbers of sets: text becomes integers."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Randomizer

from runtime.tests import set_files as sets
from tests.cli.test_cli import labeldp

LABELS = {
    "all subsets of text": [y for y in sets.LOOK_ALIKES if y] * 40 + ["other"],
    "codes": [*sets.CODES, 1, -6] * 30,
}
NAMES = pytest.mark.parametrize("name", LABELS)
KEYED = ("--key", "labels.key", "--id-column", "id")


@pytest.fixture
def place(here):
    """A directory with a key, and what writes an artifact and its tables there."""
    assert labeldp("keygen", "labels.key").exit_code == 0

    def write(name):
        labels = LABELS[name]
        (here / "sets.onnx").write_bytes(sets.model(name))
        ids = [f"row {i}" for i in range(len(labels))]
        table = pa.table({"id": ids, "y": labels, "z": ['x,"y'] * len(ids)})
        (here / "parts").mkdir()
        for part, rows in (("a", table[:100]), ("b", table[100:])):
            pq.write_table(rows, f"parts/{part}.parquet")
        pq.write_table(table, "t.parquet")
        pa_csv.write_csv(table, "t.csv")
        alone = Randomizer.load("sets.onnx", key="labels.key", context="y")
        return table, alone(labels, ids=ids).tolist()

    return write


def randomize(table, output, *options):
    result = labeldp("randomize", "sets.onnx", table, "-o", output, "--quiet", *options)
    assert result.exit_code == 0, result.output


def cells(path, name="y"):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


@NAMES
def test_a_key_gives_the_same_integers_in_every_format(place, name):
    table, expected = place(name)
    randomize("t.parquet", "p.parquet", *KEYED)
    private = pq.read_table("p.parquet")
    assert private.schema.field("y").type == pa.int64() and private["y"].to_pylist() == expected
    assert private.drop(["y"]).equals(table.drop(["y"]))
    randomize("parts", "private", *KEYED)
    assert pq.read_table("private").sort_by("id")["y"].to_pylist() == (
        private.sort_by("id")["y"].to_pylist()
    )
    for source in ("t.csv", "t.parquet"):
        randomize(source, "p.csv", *KEYED, "--overwrite")
        assert cells("p.csv") == [str(number) for number in expected]
        assert cells("p.csv", "z") == table["z"].to_pylist()
    randomize("t.csv", "added.parquet", *KEYED, "--add", "p", "--context", "y")
    added = pq.read_table("added.parquet")
    assert added.schema.field("p").type == pa.int64() and added["p"].to_pylist() == expected
    assert added["y"].to_pylist() == [str(label) for label in LABELS[name]]
