"""A column that its own artifact refutes is said to be one, whatever loss, model or correction."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.methods.corrections import rows_by_table
from labeldp_verify.opening import open_artifact as verified

from trainer.tests.command import labeldp, refused, written
from trainer.tests.test_groups import BINS
from trainer.tests.test_groups import prepared as prepared_groups
from trainer.tests.trainer_helpers import (
    CONFIG,
    INTEGERS,
    table,
    write_artifact,
    write_tables,
)

LATTICE = INTEGERS.replace("{kind: optimal_unbiased}", "{kind: laplace, lattice: 0.1}")


def with_method(text, method):
    method = "{kind: privatized, unnoted: true, %s}" % method  # noqa: UP031  # braces
    return text.replace("{kind: none}", method).replace("epochs: 3", "epochs: 1")


def doubted(directory, text):
    """No label decides an exit code, so the run is made, and says what is wrong."""
    said = labeldp("train", written(directory, text, "doubted"), "-o", directory / "run")
    assert "can hardly be private labels of" in said.splitlines()[-1]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_rows_without_a_private_label_are_named(tmp_path, suffix):
    """``randomize --beyond null`` leaves rows beyond a person's bound without one."""
    write_tables(tmp_path, 60)
    value = write_artifact(tmp_path).randomizer.values[0]
    cells = pa.array([value] * 53 + [None] * 7, pa.float64())
    private = table(60, 0).set_column(3, "y", cells)
    write = pq.write_table if suffix == "parquet" else pa_csv.write_csv
    write(private, tmp_path / f"train.{suffix}")
    text = with_method(CONFIG, "artifact: numbers.onnx, private_column: y")
    text = text.replace("train.parquet", f"train.{suffix}")
    assert "7 of 60 rows have no private label in 'y' (null): leave them out" in refused(
        tmp_path, text
    )


def test_true_labels_beside_private_ones(tmp_path):
    """What ``randomize --add`` writes says which column is private."""
    write_tables(tmp_path)
    write_artifact(tmp_path)
    labeldp("randomize", tmp_path / "numbers.onnx", tmp_path / "train.parquet",
            "-o", tmp_path / "both.parquet", "--add", "z")  # fmt: skip
    text = with_method(CONFIG, "artifact: numbers.onnx, private_column: y")
    text = text.replace("train.parquet", "both.parquet")
    assert "may hold true ones: the private ones are in 'z'" in refused(tmp_path, text)


def test_labels_of_another_group(tmp_path):
    """Each is an output of the artifact, but of no table of its own row's group."""
    artifact = prepared_groups(tmp_path, BINS, 400)
    first, other = (set(artifact.artifact.tables[i].values) for i in (0, 3))
    assert first != other
    rows = pq.read_table(tmp_path / "train.parquet")
    groups, windows = artifact.artifact.groups, artifact.artifact.tables
    keys = zip(rows["c"].to_pylist(), rows["age"].to_pylist(), strict=True)
    tables = [groups.table(key) for key in keys]
    own = pa.array([windows[number].values[0] for number in tables])
    text = with_method(CONFIG, "artifact: grouped.onnx, private_column: z")
    pq.write_table(rows.append_column("z", own), tmp_path / "train.parquet")
    train(parse_config(text.replace("epochs: 3", "epochs: 1"), "t", tmp_path), tmp_path / "taken")
    (stray,) = list(other - first)[:1]
    moved = pa.array([stray if n == 0 else windows[n].values[0] for n in tables])
    pq.write_table(rows.append_column("z", moved), tmp_path / "train.parquet")
    doubted(tmp_path, text)


def test_the_lattice_has_ends(tmp_path):
    write_artifact(tmp_path, LATTICE)
    decoded = verified(tmp_path / "numbers.onnx")
    randomizer = decoded.only.randomizer
    points = np.linspace(randomizer.low, randomizer.high, 5000).round().astype(int)
    values = np.array([randomizer.value(int(point)) for point in points])
    assert rows_by_table(decoded, None, values)[1]
    for stray in (
        randomizer.value(randomizer.low - 1),
        randomizer.value(randomizer.high + 1),
        np.nextafter(values[7], np.inf),
        np.nan,
        np.inf,
        1e308,
    ):
        assert not rows_by_table(decoded, None, np.append(values, stray))[1], stray
    assert not rows_by_table(decoded, None, np.array(["a"]))[1]
