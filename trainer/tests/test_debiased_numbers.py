"""Numbers that stand for private ones: right on average, and no noisier than that needs."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from labeldp_learn.inversion import debiased_values, likeliest_shares
from labeldp_learn.toolkit import PrivateRows
from labeldp_trainer import parse_config, train
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.methods.corrections import added_variance, debiased_numbers, rows_by_table
from labeldp_verify.opening import open_artifact as verified

from trainer.tests.trainer_helpers import CONFIG, INTEGERS, table, write_artifact

RR = INTEGERS.replace("optimal_unbiased", "randomized_response").replace("3.0", "2.0")
BINS = INTEGERS.replace("optimal_unbiased", "rr_on_bins").replace("3.0", "0.5")
CLOSED = "".join(
    line + "\n"
    for line in CONFIG.splitlines()
    if not line.startswith(("model", "optimizer", "training"))
)
LABELS = np.arange(4.0)


def objective(matrix, shares, values, weight):
    mean = matrix @ values
    variance = matrix @ values**2 - mean**2
    return shares @ (mean - LABELS) ** 2 + weight * shares @ variance


def test_of_a_full_table_the_mean_under_a_label_is_the_label():
    matrix = 0.1 + 0.6 * np.eye(4)
    values = debiased_values(matrix, LABELS, np.full(4, 0.25), 1e-12)
    np.testing.assert_allclose(matrix @ values, LABELS, atol=1e-9)


def test_labels_with_the_same_outputs_stand_for_their_mean():
    matrix = np.array([[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.2, 0.8, 0.0]])
    shares = np.array([0.3, 0.1, 0.2, 0.4])
    values = debiased_values(matrix, LABELS, shares, 1e-12)
    np.testing.assert_allclose(matrix @ values, [0.25, 0.25, 2 + 2 / 3, 2 + 2 / 3], atol=1e-8)
    assert values[2] == 0  # an output that never comes


def test_the_variance_that_randomizing_added(tmp_path):
    """Of debiased numbers, and not of the outputs, whose means are pulled towards the middle."""
    write_artifact(tmp_path, RR)
    artifact = verified(tmp_path / "numbers.onnx")
    random = np.random.default_rng(0)
    labels = random.binomial(artifact.label.size - 1, 0.3, 40_000)
    cumulated = PrivateRows.empty(artifact, 0).matrix.cumsum(axis=1)
    private = (cumulated[labels] < random.random(len(labels))[:, None]).sum(axis=1)
    parts, _ = rows_by_table(artifact, None, private)
    numbers = debiased_numbers(artifact.label, parts).values
    added = added_variance(Coded.numbers(numbers), parts, classes=False)
    assert np.isclose(added, np.square(numbers - labels).mean(), rtol=0.05)


@pytest.mark.parametrize("outputs", [3, 6])
@pytest.mark.parametrize("weight", [1e-4, 0.1, 1.0])
def test_nothing_near_has_less_bias_and_variance(weight, outputs):
    random = np.random.default_rng(0)
    matrix, shares = random.dirichlet(np.ones(outputs), 4), random.dirichlet(np.ones(4))
    values = debiased_values(matrix, LABELS, shares, weight)
    least = objective(matrix, shares, values, weight)
    for step in random.normal(size=(50, outputs)):
        assert objective(matrix, shares, values + 1e-2 * step, weight) >= least
    if weight == 1:  # the mean of the labels behind an output
        joint = shares[:, None] * matrix
        np.testing.assert_allclose(values, LABELS @ joint / joint.sum(axis=0), rtol=1e-9)


def test_the_likeliest_shares_explain_the_outputs():
    matrix, shares = 0.1 + 0.6 * np.eye(4), np.array([0.5, 0.1, 0.3, 0.1])
    found = likeliest_shares(matrix, 1e6 * shares @ matrix, np.full(4, 0.25))
    np.testing.assert_allclose(found, shares, atol=1e-6)


def run(directory, method, name="run"):
    config = CLOSED.replace("method: {kind: none}", f"method: {method}")
    return train(parse_config(config, "config", directory), directory / name)


def prepared(directory, spec, rows=20_000):
    pq.write_table(table(rows, 0), directory / "train.parquet")
    pq.write_table(table(400, 1), directory / "test.parquet")
    return write_artifact(directory, spec)


def test_the_bias_of_randomized_response_is_undone(tmp_path):
    prepared(tmp_path, RR)
    result = run(tmp_path, "{kind: privatized, artifact: numbers.onnx}")
    assert result.notes == ()
    statement = json.loads((tmp_path / "run" / "privacy.json").read_text())
    assert statement["details"]["debiased"] is True
    # as they come, the outputs keep (e² − 1)/(e² + 9) of a label's distance from the middle, and
    # predictions are off by 0.37 of the spread
    constant = json.loads((tmp_path / "run" / "result.json").read_text())["baselines"]["constant"]
    assert result.metrics["test_mse"] < 0.15 * constant["mse"]


def test_what_no_training_undoes_is_said(tmp_path):
    prepared(tmp_path, BINS, 2_000)
    result = run(tmp_path, "{kind: privatized, artifact: numbers.onnx}")
    (note,) = result.notes
    assert "off by" in note and "% of the labels' standard deviation" in note
