"""dp_sgd and labeldp_pro from the config to the run folder."""

import json
import math
import stat

import dp_accounting
import jax
import numpy as np
import pyarrow.parquet as pq
import pytest
from dp_accounting import pld
from labeldp_trainer import RunFolderError
from labeldp_trainer.methods import central as units

from trainer.tests.central_helpers import (
    CONFIG,
    REGRESSION,
    ROWS,
    lines_of,
    run,
    same,
    statement_of,
    with_method,
    write_tables,
)
from trainer.tests.command import refused
from trainer.tests.trainer_helpers import table

pytestmark = pytest.mark.slow

PRO = "kind: labeldp_pro, epsilon: 8, delta: 1e-5"


@pytest.fixture
def known_key(monkeypatch):
    """Noise that is the same in every run: what a model has learned is not left to chance."""
    monkeypatch.setattr(units, "secret_key", lambda: np.arange(8, dtype=np.uint32))


def epsilon_of(statement):
    """ε from nothing but the numbers of privacy.json, by dp-accounting."""
    details = statement["details"]
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = pld.PLDAccountant(relation, value_discretization_interval=2e-3)
    if details["amplified"]:
        event = dp_accounting.TruncatedSubsampledGaussianDpEvent(
            details["units"],
            details["sampling_rate"],
            details["max_batch"],
            details["noise_multiplier"],
        )
        accountant.compose(event, details["steps"])
    else:
        assert details["batches"] == "partition"
        event = dp_accounting.GaussianDpEvent(details["noise_multiplier"])
        accountant.compose(event, details["times_a_unit_is_used"])
    return accountant.get_epsilon(statement["delta"])


def check(directory, result, *, amplified):
    """What every run must leave."""
    folder = directory / "run"
    statement = statement_of(folder)
    assert (statement["epsilon"], statement["delta"]) == (8.0, 1e-5)
    assert statement["details"]["amplified"] is amplified
    assert 0.98 * 8 < epsilon_of(statement) <= 8
    words = (folder / "privacy.txt").read_text()
    assert words.strip() == result.statement.text()
    assert statement["statement"] == result.statement.paragraph()
    steps, sigma = statement["details"]["steps"], statement["details"]["noise_multiplier"]
    words = " ".join(words.split())
    assert f"in each of {steps} steps" in words
    assert f"σ = {sigma:.6g}" in words
    assert ("which rows were in which batch" in words) is amplified
    assert stat.S_IMODE((folder / "kept.npz").stat().st_mode) == 0o600
    assert "kept.npz, which holds the key" in words
    allowed = {"epoch", "test_loss", "test_accuracy", "test_mse", "test_mae"}
    if not amplified:
        allowed |= {"seconds", "examples_per_second", "noisy_gradient_norm"}
        allowed |= {"projection_distance", "projection_certified"}
    outcome = json.loads((folder / "result.json").read_text())
    assert {f"test_{name}" for name in outcome.get("test", {})} <= allowed
    for line in [*lines_of(folder), outcome]:
        assert set(line) <= allowed | {
            "format_version",
            "epochs",
            "epoch_of_parameters",
            "test",
            "baselines",
            "rows_tested",
            "notes",
        }
    assert outcome.get("notes", []) == list(result.notes)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))
    return statement


@pytest.mark.parametrize(
    "method",
    [
        "kind: dp_sgd, epsilon: 8, delta: 1e-5",
        f"{PRO}, denoiser: alt_conv, hull_units: 16, smoothing: 0.75",
        f"{PRO}, denoiser: self_span, microbatch: 7",
        f"{PRO}, denoiser: self_conv",
    ],
)
def test_classification(tmp_path, known_key, method):
    write_tables(tmp_path)
    result = run(tmp_path, with_method(method))
    statement = check(tmp_path, result, amplified="self" not in method)
    assert lines_of(tmp_path / "run")[0]["test_accuracy"] > 0.45  # of three classes
    if "self" in method:
        assert statement["details"]["steps"] == 2 * math.ceil(ROWS / 30)
        assert lines_of(tmp_path / "run")[0]["projection_certified"] >= 0


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        (f"{PRO}, denoiser: alt_conv, hull_units: 16, label_range: [0, 9]", "poisson"),
    ],
)
def test_regression(tmp_path, known_key, method, loss):
    write_tables(tmp_path)
    text = with_method(method, REGRESSION)
    result = run(tmp_path, text.replace("loss: squared", "loss: poisson") if loss else text)
    statement = check(tmp_path, result, amplified=True)
    assert statement["details"]["label_range"] == [0.0, 9.0]
    assert result.metrics["test_mse"] < 6.0  # the variance of the labels is 5.6


def test_users_are_the_units(tmp_path):
    write_tables(tmp_path)
    options = "user_column: user, max_examples_per_user: 2"
    text = with_method(f"kind: dp_sgd, epsilon: 8, delta: 1e-5, {options}")
    statement = check(tmp_path, run(tmp_path, text), amplified=True)
    assert statement["details"]["units"] == ROWS // 3
    assert statement["details"]["rows"] == 2 * (ROWS // 3)
    assert statement["details"]["sampling_rate"] == 30 / 40
    assert "all labels of one user, with at most 2 rows of each user" in statement["adjacency"]


def test_the_seed_is_not_the_key(tmp_path):
    """Two runs of one config differ: all their noise is from the operating system."""
    write_tables(tmp_path)
    first, second = run(tmp_path), run(tmp_path, output="second")
    assert not same(first.params, second.params)
    keys = [np.load(tmp_path / name / "kept.npz")["noise_key"] for name in ("run", "second")]
    assert keys[0].dtype == np.uint32
    assert not np.array_equal(*keys)
    for path in (tmp_path / "run").iterdir():
        if path.is_file() and path.name != "kept.npz":
            assert keys[0].tobytes() not in path.read_bytes()
    again = run(tmp_path, resume=True)  # finished: nothing is done again
    assert same(first.params, again.params)
    changed = table(ROWS, 0).append_column(
        "user", pq.read_table(tmp_path / "train.parquet")["user"]
    )
    labels = changed["colour"].to_pylist()
    labels[5] = "red" if labels[5] != "red" else "blue"
    place = changed.schema.get_field_index("colour")
    pq.write_table(changed.set_column(place, "colour", [labels]), tmp_path / "train.parquet")
    with pytest.raises(RunFolderError, match="started with other labels"):
        run(tmp_path, resume=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            with_method("kind: dp_sgd, epsilon: 1e-9, delta: 1e-30, batches: partition"),
            "train.yaml:7: method.epsilon: ε =",
        ),
        (
            with_method("kind: dp_sgd, epsilon: 1, delta: 1e-5, max_batch: 29"),
            "train.yaml:7: method.max_batch: must be between the batch size, 30, and the",
        ),
        (
            with_method(f"{PRO}, denoiser: alt_conv, hull_units: 121"),
            "train.yaml:7: method.hull_units: 121 is more than the 120 units",
        ),
        (
            CONFIG.replace("30}", "30, early_stopping: {}}"),
            "train.yaml:9: training.early_stopping: method dp_sgd cannot use the training loss",
        ),
    ],
)
def test_refused_with_one_message_and_nothing_left(tmp_path, text, expected):
    write_tables(tmp_path)
    assert expected in refused(tmp_path, text)
