"""A run that is killed and resumed ends with bitwise the parameters of one that was not."""

import json
import os
import subprocess
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
        "{kind: none}", "{kind: privatized, artifact: numbers.onnx, key: k, id_column: id}"
    )
    .replace("epochs: 3", "epochs: 30, early_stopping: {}")
    .replace("checkpoint_every: 3", "checkpoint_every: 2")
    .replace("adam, learning_rate: 0.02", "momentum, learning_rate: 0.02, schedule: cosine")
)

SIX_EPOCHS = CONFIG.replace("epochs: 3", "epochs: 6").replace("every: 3", "every: 2")


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
    from labeldp_runtime import Key

    write_tables(tmp_path)
    write_artifact(tmp_path)
    Key.create(tmp_path / "k")  # so that both runs have the same private labels
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


def test_what_a_kill_left_of_a_checkpoint_is_not_spoken_of(tmp_path):
    write_tables(tmp_path)
    write_config(tmp_path, SIX_EPOCHS)
    held = [sys.executable, "-c", f"{HOLD}hold('cut', 4){TRAIN}", *arguments(tmp_path, "cut")]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    kill_behind(4, tmp_path / "cut" / "metrics.jsonl", held, env=environment)
    checkpoints = tmp_path / "cut" / "checkpoints"
    for epoch in (4, 6):  # as a kill in the middle of a checkpoint leaves it
        unfinished = checkpoints / f"{epoch}.orbax-checkpoint-tmp" / "default.orbax-checkpoint-tmp"
        unfinished.mkdir(parents=True, exist_ok=True)
        (unfinished / "_METADATA").write_text("{")
    other = tmp_path / "other" / "6.orbax-checkpoint-tmp"
    other.mkdir(parents=True)
    (checkpoints / "5.orbax-checkpoint-tmp").symlink_to(other)
    resume = [sys.executable, "-c", TRAIN, *arguments(tmp_path, "cut", "--resume")]
    done = subprocess.run(resume, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "checkpoint" not in done.stderr and "absl" not in done.stderr
    assert {path.name for path in checkpoints.iterdir() if path.name[0].isdigit()} <= {
        "5.orbax-checkpoint-tmp",  # a link is not ours
        "6",
    }
    assert other.is_dir()


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
