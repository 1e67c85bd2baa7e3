"""What an artifact says of private labels: unbiased targets, weights, matrices and sets."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_learn import PrivateLabelError, PrivateLabels
from labeldp_learn.private_labels import tables_of
from labeldp_verify import VerificationError
from labeldp_verify.analysis import matrix
from labeldp_verify.opening import open_artifact

from learn.tests.drawn import FILES, GROUPS, JOINT, RESPONSE, SETS, drawn

UNBIASED = [
    f"plain/{name}.onnx"
    for name in ("auto-private-prior", "debiased-rr", "optimal-unbiased", "optimal-unbiased-grid")
]
CLASSES = ["plain/rr-with-prior-codes.onnx", "plain/exponential-text.onnx", "sets/subsets.onnx"]


def every_output(artifact, table=0):
    """A column with every output of a table once, and Pr[output | label]."""
    randomizer = artifact.tables[table]
    return np.array(randomizer.values), matrix(randomizer, range(artifact.label.size))


@pytest.mark.parametrize("name", UNBIASED)
def test_targets_of_numbers_have_each_label_for_their_mean_and_are_no_noisier_than_outputs(name):
    artifact = open_artifact(FILES / name)
    column, chances = every_output(artifact)
    private = PrivateLabels(artifact, column)
    targets, labels = private.targets(), np.array(list(artifact.label.listed), float)
    assert np.abs(chances @ targets - labels).max() < 1e-6 * np.ptp(labels)
    assert private.bias < 1e-6
    likely = private.shares() @ chances
    assert likely @ targets**2 <= likely @ column**2 * (1 + 1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_targets_of_classes_have_the_one_hot_row_for_their_mean(name):
    artifact = open_artifact(FILES / name)
    column, chances = every_output(artifact)
    targets = PrivateLabels(artifact, column).targets()
    assert np.allclose(chances @ targets, np.eye(len(chances)), atol=1e-9)
    assert np.allclose(targets.sum(axis=1), 1)


def test_a_file_that_is_too_large_for_an_artifact_is_not_read_whole(tmp_path):
    path = tmp_path / "x.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # bytes, none of which is on the disk
    with pytest.raises(VerificationError, match="larger than 64 MiB"):
        PrivateLabels(path, [1])


def test_labels_with_the_same_outputs_leave_a_bias_that_is_said():
    artifact = open_artifact(FILES / "plain/rr-on-bins-squared.onnx")
    assert PrivateLabels(artifact, drawn(artifact, np.arange(2000) % 12)).bias > 0.1


def test_labels_that_nothing_tells_apart_have_no_targets():
    artifact = open_artifact(FILES / "plain/rr-with-prior-text.onnx")
    private = PrivateLabels(artifact, every_output(artifact)[0])
    with pytest.raises(PrivateLabelError, match="forward-corrected loss"):
        private.targets()


def test_columns_of_every_library_are_read_alike():
    artifact = open_artifact(SETS)
    numbers = [3, 0, 14, 3]
    wanted = PrivateLabels(artifact, numbers).codes
    columns = [
        np.array(numbers),
        np.array(numbers, float),
        pd.Series(numbers, index=[5, 6, 7, 8]),
        pd.Series(numbers, dtype="category"),
        pl.Series(numbers),
        pa.array(numbers),
        pa.chunked_array([numbers[:1], numbers[1:]]),
    ]
    for column in columns:
        assert PrivateLabels(artifact, column).codes.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "column",
    [
        [1, 99],
        [1.5, 1],
        [None, 1],
        ["1", "2"],
        [[1], [2, 3]],
    ],
)
def test_what_is_no_output_is_refused_and_not_quoted(column):
    with pytest.raises(PrivateLabelError) as refused:
        PrivateLabels(RESPONSE, column)
    assert "99" not in str(refused.value) and "1.5" not in str(refused.value)


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [1, -1], [1, float("nan")], [0, 0]])
def test_odd_counts_are_refused(counts):
    """Negative ones gave shares that are NaN, and of too many the first ones counted."""
    column = open_artifact(RESPONSE).tables[0].values[:2]
    with pytest.raises(PrivateLabelError, match="for each row"):
        PrivateLabels(RESPONSE, column, counts=counts).shares()


def test_additive_noise_has_outputs_on_its_lattice_only():
    artifact = open_artifact(FILES / "plain/laplace.onnx")
    step = artifact.tables[0]
    on = [step.value(step.low), step.value(step.high), step.value(0)]
    assert PrivateLabels(artifact, on).targets().shape == (3,)
    with pytest.raises(PrivateLabelError, match="not outputs"):
        PrivateLabels(artifact, [step.value(0) + step.unit / 2])


def test_sets_have_members_and_become_weighted_rows():
    artifact = open_artifact(SETS)
    private = PrivateLabels(artifact, [0, 14])
    sets = artifact.tables[0].sets
    members = private.members()
    assert [private.labels.index(label) for label in members[0]] == sets.members(0)
    rows, labels, weights = private.expanded()
    assert np.allclose(np.bincount(rows, weights), 1)
    assert labels[rows == 1].tolist() == sets.members(14)


def frame(artifact, rows):
    """Group columns of listed rows and others."""
    cells = [row for table in range(artifact.groups.tables) for row in artifact.groups.rows(table)]
    chosen = list(itertools.islice(itertools.cycle(cells), rows))
    names = [column.name for column in artifact.groups.columns]
    return pd.DataFrame(dict(zip(names, zip(*chosen, strict=True), strict=True)))


@pytest.mark.parametrize("path", sorted((FILES / "groups").glob("*.onnx")), ids=lambda p: p.stem)
def test_a_row_has_the_table_of_its_group(path: Path):
    artifact = open_artifact(path)
    columns = frame(artifact, 200)
    tables = tables_of(artifact.groups, columns, 200)
    wanted = [artifact.groups.table(row) for row in columns.itertuples(index=False)]
    assert tables.tolist() == wanted
    for other in (pl.from_pandas(columns), pa.Table.from_pandas(columns), dict(columns)):
        assert tables_of(artifact.groups, other, 200).tolist() == wanted


def test_targets_by_group_are_unbiased_and_weighted_by_their_noise():
    artifact = open_artifact(GROUPS)
    columns = frame(artifact, 600)
    tables = tables_of(artifact.groups, columns, 600)
    labels = np.arange(600) % artifact.label.size
    private = PrivateLabels(artifact, drawn(artifact, labels, tables=tables), columns)
    assert private.targets().shape == (600,) and np.isclose(private.weights().mean(), 1)
    for part in private.parts:
        assert len(np.unique(private.weights()[part.rows])) == 1
    with pytest.raises(PrivateLabelError, match="say which"):
        private.matrix()
    other = artifact.tables[artifact.groups.own_tables]
    assert private.matrix("other").values.shape == (artifact.label.size, other.outputs)
    with pytest.raises(PrivateLabelError, match="table for each group"):
        PrivateLabels(artifact, labels)


def test_a_label_of_several_columns_has_targets_of_each():
    artifact = open_artifact(JOINT)
    labels = np.arange(3000) % artifact.label.size
    columns = drawn(artifact, labels)
    private = PrivateLabels(artifact, columns)
    assert private.targets().shape == (3000, artifact.label.size)
    as_array = np.array(list(zip(*columns.values(), strict=True)), object)
    assert PrivateLabels(artifact, as_array).codes.tolist() == private.codes.tolist()
    weights = private.parts[0].output_values
    chances = private.matrix().values
    for name, part in zip(artifact.certificate.label_columns, artifact.label.parts, strict=True):
        goal = private.parts[0].goal(name)
        assert np.allclose(chances @ weights(name).reshape(len(chances), -1), goal, atol=1e-6)
        assert part.kind != "categorical" or goal.shape == (artifact.label.size, part.size)
    with pytest.raises(PrivateLabelError, match="no column"):
        private.targets("nothing")


@pytest.mark.parametrize("kind", [pa.array, pd.Series, pl.Series, list])
@pytest.mark.parametrize("name", ["plain/optimal-unbiased.onnx", "plain/exponential-text.onnx"])
def test_rows_without_a_private_label_are_counted(name, kind):
    artifact = open_artifact(FILES / name)
    column = [*every_output(artifact)[0].tolist(), None, None]
    with pytest.raises(PrivateLabelError, match=r"2 of \d+ rows have no private label"):
        PrivateLabels(artifact, kind(column))
