"""Training on labels whose public group chose the table that randomized them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Randomizer
from labeldp_trainer import RunFolderError, parse_config, train
from labeldp_trainer.methods.corrections import corrected, debiased_numbers, rows_by_table
from labeldp_verify.opening import open_artifact as verified

from labeldp_compile import compile_spec
from trainer.tests.command import refused
from trainer.tests.trainer_helpers import CONFIG

SPEC = """
version: 1
name: grouped
goal: labels
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 3.0}
prior: {kind: public, data: train.parquet}
mechanism: {kind: randomized_response}
groups: {columns: [{column: c, values: [u, v]}, {column: age, bands: [18, 65]}]}
"""
CLOSED = "".join(
    line + "\n"
    for line in CONFIG.splitlines()
    if not line.startswith(("model", "optimizer", "training"))
)
FIT = "{kind: privatized, artifact: grouped.onnx}"


def rows(count, seed):
    """Labels 0 … 4 of u and 5 … 9 of v and w, each twice as likely if b; age is no feature."""
    random = np.random.default_rng(seed)
    c, b = random.choice(["u", "v", "w"], count), random.integers(0, 2, count)
    age = random.choice([5.0, 18.0, 40.0, 65.0, np.nan], count)
    y = np.where(c == "u", 0, 5) + random.integers(0, 3, count) + b
    colour = np.where(c == "u", "red", np.where(b == 1, "green", "blue"))
    a = random.normal(size=count)
    return pa.table(
        {"a": a, "b": b, "c": c, "age": age, "y": y, "colour": colour, "id": np.arange(count)}
    )


def prepared(directory, text=SPEC, count=2_000):
    pq.write_table(rows(count, 0), directory / "train.parquet")
    pq.write_table(rows(300, 1), directory / "test.parquet")
    (directory / "spec.yaml").write_text(text, encoding="utf-8")
    artifact = compile_spec(directory / "spec.yaml")
    artifact.write(directory, overwrite=True)
    return artifact


def run(directory, method=FIT, base=CLOSED, output="run", **options):
    text = base.replace("method: {kind: none}", f"method: {method}")
    return train(parse_config(text, "config", directory), directory / output, **options)


def kept(directory, output="run"):
    with np.load(directory / output / "kept.npz") as archive:
        return {name: archive[name] for name in archive.files}


def expected_tables(artifact, table):
    """By the certificate's own map, one row at a time."""
    groups = artifact.artifact.groups
    columns = [table[column.name].to_pylist() for column in groups.columns]
    return [groups.table(row) for row in zip(*columns, strict=True)]


# Each group has labels of its own: bins of its prior are outputs that no other group has.
BINS = SPEC.replace("randomized_response", "rr_on_bins")


def test_every_label_is_randomized_by_the_table_of_its_row(tmp_path):
    artifact = prepared(tmp_path, BINS)
    result = run(tmp_path)
    stored = kept(tmp_path)
    tables = expected_tables(artifact, rows(2_000, 0))
    assert stored["table_of_row"].tolist() == tables
    assert len(set(tables)) == artifact.artifact.groups.tables == 7
    for number, window in enumerate(artifact.artifact.tables):
        mine = stored["private_labels"][stored["table_of_row"] == number]
        assert set(mine.tolist()) <= set(window.values)
    assert set(artifact.artifact.tables[0].values) != set(artifact.artifact.tables[3].values)
    said = json.loads((tmp_path / "run" / "privacy.json").read_text())
    assert (said["epsilon"], said["details"]["group_columns"]) == (3.0, ["c", "age"])
    assert "using the table of its row's group (7 tables; by c, age)" in said["statement"]
    assert (
        "groups are public and were fixed before any label was seen; nothing here can prove it"
        in said["statement"]
    )
    constant = json.loads((tmp_path / "run" / "result.json").read_text())["baselines"]["constant"]
    assert result.metrics["test_mse"] < 0.5 * constant["mse"]


def test_labels_that_are_private_already_are_debiased_by_the_same_tables(tmp_path):
    """The true labels may be gone; the parameters are those of the run that randomized."""
    prepared(tmp_path)
    first = run(tmp_path)
    private = rows(2_000, 0).drop_columns(["y", "colour"])
    private = private.append_column("z", pa.array(kept(tmp_path)["private_labels"]))
    pq.write_table(private, tmp_path / "train.parquet")
    method = FIT.replace("}", ", unnoted: true, private_column: z}")
    second = run(tmp_path, method, output="second")
    for a, b in zip(first.params["model"].values(), second.params["model"].values(), strict=True):
        np.testing.assert_array_equal(a, b)
    pq.write_table(private.drop_columns(["age"]), tmp_path / "train.parquet")
    text = CLOSED.replace("method: {kind: none}", f"method: {method}")
    (tmp_path / "run").rename(tmp_path / "first")
    assert "train.parquet: has no column 'age'" in refused(tmp_path, text)


# Each group has a distribution of its own: only its own table's matrix can undo that.
THREE = """
version: 1
name: three
goal: labels
label: {column: y, domain: {kind: integer, min: 10, max: 13}}
loss: squared
privacy: {epsilon: 2.0}
prior: {kind: public, data: labels.parquet}
mechanism: {kind: optimal_unbiased}
groups: {column: g, values: [7, -2]}
"""


@pytest.fixture
def three(tmp_path):
    """An artifact of three tables of four labels, and private labels from known words."""
    random = np.random.default_rng(0)
    groups = random.choice([7, -2, 99], 60_000)
    truth = np.where(groups == 7, 10, 11) + random.integers(0, 2, 60_000) + (groups == 99)
    pq.write_table(pa.table({"y": truth, "g": groups}), tmp_path / "labels.parquet")
    (tmp_path / "spec.yaml").write_text(THREE, encoding="utf-8")
    compile_spec(tmp_path / "spec.yaml").write(tmp_path)
    path = tmp_path / "three.onnx"
    words = random.integers(0, 2**64, 60_000, np.uint64)
    private = Randomizer.load(path).apply_words(truth, words, columns={"g": groups})
    table = np.array([{7: 0, -2: 1, 99: 2}[group] for group in groups.tolist()])
    return verified(path), table, truth, private


def test_numbers_are_debiased_by_their_own_table(three):
    decoded, table, truth, private = three
    found = debiased_numbers(decoded.label, rows_by_table(decoded, table, private)[0])
    for number in range(3):
        for label in np.unique(truth[table == number]):
            mine = found.values[(table == number) & (truth == label)]
            assert abs(mine.mean() - label) < 0.1
    assert found.bias < 0.05
    _, are_outputs = rows_by_table(decoded, (table + 1) % 3, private)
    assert not are_outputs


def test_classes_are_debiased_by_their_own_table(three):
    decoded, table, truth, private = three
    parts, are_outputs = rows_by_table(decoded, table, private)
    soft = corrected(parts, [0, 2, 1, 3], "backward").each()
    for number in range(3):
        mine = truth[table == number][:, None] == np.array([10, 12, 11, 13])
        np.testing.assert_allclose(soft[table == number].mean(axis=0), mine.mean(axis=0), atol=0.05)
    _, are_outputs = rows_by_table(decoded, table, np.full(len(table), 77))
    assert not are_outputs


def test_a_resumed_run_needs_the_same_groups(tmp_path):
    prepared(tmp_path, BINS, 300)
    base = CLOSED
    run(tmp_path, base=base)
    before = kept(tmp_path)["private_labels"]
    run(tmp_path, base=base, resume=True)
    np.testing.assert_array_equal(kept(tmp_path)["private_labels"], before)
    other = rows(300, 0)
    ages = np.roll(other["age"].to_numpy(), 1)
    pq.write_table(other.set_column(3, "age", pa.array(ages)), tmp_path / "train.parquet")
    with pytest.raises(RunFolderError, match="the run was started with other groups"):
        run(tmp_path, base=base, resume=True)
