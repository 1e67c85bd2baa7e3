"""``labeldp audit RUN``: its own tables and its own ε, or other tables."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_learn.model_audit import attack
from labeldp_trainer import parse_config, train

from labeldp_compile.cli import main

CONFIG = """
version: 1
name: audited
data: {kind: table, train: train.parquet, test: test.parquet, label: y, numeric: [a]}
loss: squared
method: {kind: one_release, epsilon: 1, delta: 1e-5, label_range: [0, 10]}
"""


def audit(*arguments):
    return CliRunner().invoke(main, ["audit", *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    random = np.random.default_rng(0)
    for name in ("train", "test"):
        a = random.normal(size=800)
        y = np.clip(5 + a + random.normal(size=800), 0, 10)
        pq.write_table(pa.table({"a": a, "y": y, "copy": y}), folder / f"{name}.parquet")
    train(parse_config(CONFIG, "audited.yaml", folder), folder / "run")
    return folder / "run"


@pytest.fixture(autouse=True)
def one_seed(monkeypatch):
    monkeypatch.setattr(attack, "system_random", lambda: np.random.default_rng(11))


def test_a_run_is_audited_on_its_own_tables_and_features(run):
    """The column that is no feature would tell the stand-in every label."""
    result = audit(run, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["epsilon"], found["delta"]) == (1, 1e-5)
    assert found["epsilon_lower_bound"] <= 1 and found["others"]["made"] > 10


def test_other_tables_and_labels_may_be_given(run):
    train = run.parent / "train.parquet"
    pq.write_table(
        pq.read_table(run.parent / "test.parquet").rename_columns(["a", "z", "y"]),
        run.parent / "other.parquet",
    )
    result = audit(run, "--untrained", run.parent / "other.parquet", "--trained", train)
    assert result.exit_code == 0, result.output
    result = audit(run, "--untrained", run.parent / "other.parquet", "--label", "z")
    assert result.exit_code == 2 and "'z'" in result.stderr


def test_the_rows_of_training_are_no_others(run):
    """They gave a bound of 0 and exit code 0."""
    train = run.parent / "train.parquet"
    result = audit(run, "--untrained", train)
    named = (
        f"{train}: has the rows of {run / '../train.parquet'}; give rows that were not trained on"
    )
    assert result.exit_code == 2 and named in result.stderr


def test_what_the_run_states_is_not_stated_again(run):
    assert "--epsilon is for" in audit(run, "--epsilon", "2").stderr
