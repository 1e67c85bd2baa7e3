"""A run folder that is there is refused before anything is read, and before JAX loads."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from labeldp_trainer import parse_config, train
from labeldp_trainer.cli import train_command

from trainer.tests.trainer_helpers import write_tables

# No module of JAX can be loaded, and no table is there: whatever goes on is found out.
WITHOUT_JAX = """
import sys
sys.modules["jax"] = None
from labeldp_compile.cli import main
main(prog_name="labeldp")
"""


@pytest.fixture
def taken(tmp_path):
    """A run folder, as far as anybody looks before a refusal."""
    folder = tmp_path / "run"
    folder.mkdir()
    facts = {"format_version": "1.0", "config_sha256": "0" * 64}
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def labeldp(directory, *arguments):
    """The command in a process of its own, in which JAX cannot be imported."""
    line = [sys.executable, "-c", WITHOUT_JAX, *map(str, arguments)]
    return subprocess.run(line, cwd=directory, capture_output=True, text=True, check=False)


def require_refused(done, words):
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("labeldp: ") and done.stderr.count("\n") == 1, done.stderr
    assert words in done.stderr


def test_before_the_config_is_read(tmp_path, taken):
    done = labeldp(tmp_path, "train", "no-such-config.yaml", "-o", "run")
    require_refused(done, "run: already exists; use --resume to continue it, or choose another")


def test_a_name_that_is_taken_by_something_else(tmp_path):
    path = tmp_path / "run"
    path.symlink_to(tmp_path / "nowhere")
    result = CliRunner().invoke(train_command, ["no-such-config.yaml", "-o", str(path)])
    assert result.exit_code == 2
    assert "is not a run folder, or is damaged; choose another folder" in result.stderr


@pytest.fixture
def open_to_all():
    before = os.umask(0)
    yield
    os.umask(before)


STAGES = """
version: 1
name: small
data: {kind: table, train: train.parquet, label: colour, numeric: [a, b],
  classes: [red, green, blue]}
model: {kind: linear}
loss: cross_entropy
method: {kind: METHOD}
optimizer: {kind: sgd, learning_rate: 0.1}
training: {epochs: 1, batch_size: 20}
"""
DRAWN = {
    "dp_sgd": "dp_sgd, epsilon: 8, delta: 1e-5",
    "lp_mst": "lp_mst, epsilon: 1, stages: 2",
}


@pytest.mark.parametrize("method", DRAWN)
def test_secrets_of_a_run_are_for_its_owner_alone(tmp_path, open_to_all, method):
    write_tables(tmp_path, 100)
    text = STAGES.replace("METHOD", DRAWN[method])
    folder = tmp_path / "run"
    train(parse_config(text, "config", tmp_path), folder)
    secret = [folder / "kept.npz", *folder.rglob("checkpoints"), *folder.glob("stages/*")]
    assert len(secret) >= 2
    assert not any(path.stat().st_mode & 0o077 for path in secret)
