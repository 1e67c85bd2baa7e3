"""A run that is killed and resumed ends with bitwise the parameters of one that was not."""

import json
import os
import sys

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from click.testing import CliRunner
from labeldp_trainer.cli import train_command
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.run.checkpoints import Checkpoints, State

from trainer.tests.kills import HOLD, TRAIN, kill_behind
from trainer.tests.trainer_helpers import CONFIG, write_artifact, write_config, write_tables

pytestmark = pytest.mark.slow

TEXT = (
    CONFIG.replace(
        "{kind: none}",
        "{kind: privatized, artifact: numbers.onnx, private_column: y, unnoted: true}",
    )
    .replace("epochs: 3", "epochs: 30, early_stopping: {}")
    .replace("checkpoint_every: 3", "checkpoint_every: 2")
    .replace("adam, learning_rate: 0.02", "momentum, learning_rate: 0.02, schedule: cosine")
)


def arguments(directory, output, *options):
    return [str(directory / "train.yaml"), "-o", str(directory / output), "--quiet", *options]


def in_this_process(words):
    result = CliRunner().invoke(train_command, words)
    assert result.exit_code == 0, result.output


def parameters(folder):
    with np.load(folder / "params.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.slow
def test_kill_and_resume(tmp_path):
    write_tables(tmp_path)
    write_artifact(tmp_path)
    write_config(tmp_path, TEXT)
    in_this_process(arguments(tmp_path, "whole"))
    metrics = tmp_path / "cut" / "metrics.jsonl"
    held = [sys.executable, "-c", f"{HOLD}hold('cut', 20){TRAIN}", *arguments(tmp_path, "cut")]
    kill_behind(8, metrics, held, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    assert not (tmp_path / "cut" / "result.json").exists()
    with metrics.open("a") as file:
        file.write('{"epoch": 9')  # as a kill in the middle of a line leaves it
    in_this_process(arguments(tmp_path, "cut", "--resume"))
    whole, cut = parameters(tmp_path / "whole"), parameters(tmp_path / "cut")
    assert whole.keys() == cut.keys()
    for name, leaf in whole.items():
        np.testing.assert_array_equal(leaf, cut[name])
    for name in ("epoch", "batch_loss", "training_loss", "test_loss"):
        assert column(tmp_path / "whole", name) == column(tmp_path / "cut", name)


def column(folder, name):
    return [json.loads(line)[name] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("error", [ValueError("RESOURCE_EXHAUSTED"), OSError(28, "No space left")])
def test_a_full_disk_at_a_checkpoint_is_one_line(tmp_path, monkeypatch, error):
    def full(*state, **options):
        raise error

    monkeypatch.setattr(ocp.CheckpointManager, "save", full)
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        some = jnp.zeros(1)
        state = State({"w": some}, (), jnp.int32(1), {"w": some}, some[0], jnp.int32(0))
        with pytest.raises(RunFolderError, match="a checkpoint cannot be written"):
            checkpoints.save(state)
