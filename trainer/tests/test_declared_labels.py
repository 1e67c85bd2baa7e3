"""A label column whose declared type can hold no label is refused, whatever its values are."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer.data.labels import Cells, declared, require_declared
from labeldp_trainer.errors import DataError

TEXT = pa.array(["1", "red", None])
COLUMNS = {
    "text": TEXT,
    "a dictionary of text": TEXT.dictionary_encode(),
    "integers": pa.array([1, 2, None]),
    "floats": pa.array([1.0, 2.5, None]),
    "decimals": pa.array([1, 2, None]).cast(pa.decimal128(22, 2)),
    "booleans": pa.array([True, False, None]),
    "nulls": pa.nulls(3),
    "bytes": pa.array([b"red", b"1", None]),
    "dates": pa.array([1, 2, None], pa.int32()).cast(pa.date32()),
    "numpy text": np.array(["1", "red", ""]),
    "numpy integers": np.array([1, 2, 0]),
    "numpy booleans": np.array([True, False, True]),
}
TASKS = {
    "numbers": None,
    "text": ("red", "green"),
    "integers": (1, 2),
    "both": (2, "red"),
}
REFUSED = {
    "numbers": {name for name in COLUMNS if "text" in name},
    "text": {"integers", "floats", "decimals", "booleans"} | {"numpy integers", "numpy booleans"},
    "integers": {name for name in COLUMNS if "text" in name},
    "both": {"booleans", "numpy booleans"},
}
NEVER = {"nulls", "bytes", "dates"}
PAIRS = list(itertools.product(TASKS, COLUMNS))


def refused(values, classes):
    try:
        require_declared(values, classes, "t.parquet", "y")
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("task", "column"), PAIRS)
def test_types_that_hold_no_label(task, column):
    said = refused(COLUMNS[column], TASKS[task])
    assert (said is not None) == (column in REFUSED[task] | NEVER)
    if said is not None:
        assert said.startswith("t.parquet: 'y' is declared to hold ") and "\n" not in said


@pytest.mark.parametrize("column", [name for name in COLUMNS if "numpy" not in name])
def test_values_decide_nothing(column):
    """No row, or nulls alone: the answer is that of the type."""
    values = COLUMNS[column]
    for classes in TASKS.values():
        said = refused(values, classes)
        assert refused(values.slice(0, 0), classes) == said
        assert refused(pa.nulls(4, values.type), classes) == said
        assert refused(pa.chunked_array([values, values]), classes) == said


def test_what_declares_no_type_is_taken():
    assert declared(Cells(pa.array(["red"], pa.large_string()))) is None
    assert declared(np.array([None, "red", 1], object)) is None


TABLE = """
version: 1
name: quiet
data: {kind: table, train: train.%s, label: y, numeric: [a]%s}
"""
NUMBERS = (
    "loss: squared\nmethod: {kind: one_release, epsilon: 1, delta: 1e-5, label_range: [0, 20]}"
)
CLASSES = "loss: cross_entropy\nmethod: {kind: %s, epsilon: 4, delta: 1e-5}"
RUNS = {
    "numbers": ("", NUMBERS),
    "K classes": (", classes: 4", CLASSES % "one_release"),
    "listed classes": (", classes: [1, 2, 3]", CLASSES % "one_release"),
    "votes": (", classes: [1, 2, 3]", CLASSES % "pate"),
}


@pytest.fixture
def place(tmp_path):
    """300 rows of text labels, most of which are numbers by their looks."""
    a = np.random.default_rng(0).normal(size=300)
    labels = [str(i % 4) for i in range(300)]
    pq.write_table(pa.table({"a": a, "y": labels}), tmp_path / "train.parquet")
    lines = [f"{x!r},{y}" for x, y in zip(a.tolist(), labels, strict=True)]
    (tmp_path / "train.csv").write_text("\n".join(["a,y", *lines]) + "\n", encoding="utf-8")
    return tmp_path
