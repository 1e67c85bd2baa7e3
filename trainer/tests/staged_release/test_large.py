"""A table that does not fit into memory gives the same release and model as one that does."""

import errno
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import DataError
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data import features, table
from labeldp_trainer.data.table import TableRows
from labeldp_trainer.interactions import answers
from labeldp_trainer.one_release import plan
from labeldp_trainer.representations import representation

from trainer.tests.one_release.test_command import files
from trainer.tests.staged_release.test_runs import labeldp, with_noise

ROWS = 3_000
CONFIG = """
version: 1
name: large
data: {kind: table, train: rows, label: y, categorical: [c], %s}
loss: %s
method: {kind: %s, epsilon: 2, delta: 1e-3%s}
"""
STAGED = "staged_release"
KINDS = {
    "counts": (
        "numeric: [a, b], dates: [d], weights: w",
        "poisson",
        STAGED,
        ", label_range: [0, 9]",
    ),
    "classes": (
        "numeric: [a, b], dates: [d], weights: w, classes: [0, 1, 2]",
        "cross_entropy",
        STAGED,
        "",
    ),
    "vectors": ("numeric: [b], classes: [0, 1, 2]", "cross_entropy", "one_release", ""),
}


def write(folder):
    """Three files, of which one has groups of rows and one has no missing number."""
    random = np.random.default_rng(5)
    columns = {
        "a": np.where(random.random(ROWS) < 0.1, np.nan, random.normal(size=ROWS)),
        "b": random.integers(0, 40, ROWS),
        "c": pa.array(random.choice(["x", "y", "z"], ROWS), mask=random.random(ROWS) < 0.1),
        "d": pa.array(random.integers(0, 20_000, ROWS), pa.int32()).cast(pa.date32()),
        "w": random.choice([0.5, 1.0, 2.0], ROWS),
        "y": random.integers(0, 3, ROWS),
    }
    whole = pa.table(columns)
    (folder / "rows").mkdir()
    for number, (start, stop) in enumerate([(0, 700), (700, 701), (701, ROWS)]):
        part = whole.slice(start, stop - start)
        pq.write_table(part, folder / f"rows/{number}.parquet", row_group_size=400)


@pytest.mark.parametrize("kind", KINDS)
def test_the_release_and_the_model_are_the_same(tmp_path, monkeypatch, kind):
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS[kind])
    with_noise(monkeypatch, lambda exact, sigma: exact + sigma // 3)
    monkeypatch.setattr(plan, "noisy", lambda exact, sigma: exact + sigma // 3)
    found = []
    for where in ("memory", "disk"):
        if where == "disk":
            monkeypatch.setattr(features, "_IN_MEMORY", 0)
            monkeypatch.setattr(table, "_KEPT_BYTES", 0)
            monkeypatch.setattr(answers, "_KEPT_BYTES", 0)
            monkeypatch.setattr(representation, "_MOST_BYTES", 0)
            monkeypatch.setenv("TMPDIR", str(tmp_path))
        result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / where / "run")
        assert result.exit_code == 0, result.output
        own = files(tmp_path / where / "run")
        assert ("representation/train.npy" in own) == (kind == "vectors" and where == "memory")
        stated = {"run.json", "representation/train.npy"}
        found.append({name: own[name] for name in own if name not in stated})
    assert found[0].keys() == found[1].keys() and found[0] == found[1]


def test_a_disk_without_room_is_an_error_before_anything_is_drawn(tmp_path, monkeypatch):
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS["counts"])
    monkeypatch.setattr(features, "_IN_MEMORY", 0)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
    assert result.exit_code == 2 and "set TMPDIR to a folder on a larger disk" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setattr(table, "_KEPT_BYTES", 0)
    config = TableData(kind="table", train="rows", label="y", numeric=("b",))
    rows = TableRows(tmp_path / "rows", config, ["y"])
    assert rows.rows == ROWS
    (tmp_path / "rows/1.parquet").unlink()
    with pytest.raises(DataError, match="changed while it was read"):
        list(rows.batches())
