"""Multi-stage training: every label once, on the disk before it is used, better than one stage."""

import os
import sys

import jax
import numpy as np
import pytest
from labeldp_trainer import RunFolderError
from labeldp_trainer.methods.published.label_noise import softmax, split
from labeldp_trainer.run.program import Stages

from trainer.tests.kills import HOLD, kill_behind
from trainer.tests.label_method_helpers import (
    CONFIG,
    config,
    kept,
    problem,
    run,
    statement,
    write_problem,
)
from trainer.tests.noise import words_from

pytestmark = pytest.mark.slow

THREE = "kind: lp_mst, epsilon: 1.5, stages: 3, fractions: [0.5, 0.3, 0.2]"


def private_labels(folder):
    """[n] private labels and the stage that each was drawn in."""
    stage_of = kept(folder)["stage_of_example"]
    labels = np.full(len(stage_of), -1)
    for stage in range(1, stage_of.max() + 1):
        place = folder if stage == 1 else folder / "stages" / str(stage)
        labels[stage_of == stage] = kept(place)["private_labels"]
    return labels, stage_of


def test_better_than_one_stage_and_every_label_once(tmp_path, drawn):
    write_problem(tmp_path)
    truth, one, two = problem(3000, 1)["y"], [], []
    for seed in range(2):
        base = CONFIG.replace("size: 100", f"size: 100, seed: {seed}, checkpoint_every: 4")
        single = run(tmp_path, "kind: lp_mst, epsilon: 1.5, stages: 1", f"one{seed}", base)
        assert not (single.folder / "stages").exists()
        one.append(single.metrics["test_accuracy"])
        method = "kind: lp_mst, epsilon: 1.5, fractions: [0.6, 0.4]"
        result = run(tmp_path, method, f"two{seed}", base)
        two.append(result.metrics["test_accuracy"])
        labels, stage_of = private_labels(result.folder)
        assert np.bincount(stage_of).tolist() == [0, 1800, 1200]
        assert labels.min() >= 0
        right = [(labels == truth)[stage_of == stage].mean() for stage in (1, 2)]
        assert abs(right[0] - np.e**1.5 / (np.e**1.5 + 11)) < 0.05  # plain randomized response
        assert right[1] > right[0] + 0.1
    assert drawn == [(3000,), (1800,), (1200,)] * 2
    assert np.mean(two) > np.mean(one) + 0.02
    said = statement(result.folder)
    assert (said["epsilon"], said["delta"]) == (1.5, 0.0)
    assert said["details"]["labels_of_stages"] == [1800, 1200]
    for text in ("3,000 labels were split over 2 stages", "exactly once", "ε = 1.5)-label-DP"):
        assert text in said["statement"]


def test_split_is_random_and_sees_no_label():
    stages = split([5, 3, 2], 0)
    assert np.bincount(stages).tolist() == [0, 5, 3, 2]
    assert stages.tolist() == split([5, 3, 2], 0).tolist()
    assert stages.tolist() != split([5, 3, 2], 1).tolist()


def test_temperature():
    logits = np.array([[0.0, 1.0, 3.0], [np.inf, 0.0, 0.0]], np.float32)
    expected = np.exp([0.0, 2.0, 6.0]) / np.exp([0.0, 2.0, 6.0]).sum()
    np.testing.assert_allclose(softmax(logits, 0.5)[0], expected)
    assert np.isnan(softmax(logits, 0.5)[1]).any()  # and so a uniform prior


def test_labels_are_stored_before_they_are_used(tmp_path, drawn, monkeypatch):
    write_problem(tmp_path, 600)
    create, failures = Stages.create, [KeyboardInterrupt]

    def fails_once(self, number, keep):
        if number == 2 and failures:
            raise failures.pop()  # after the draw, before anything is written
        return create(self, number, keep)

    def on_the_disk(line):
        labels = [len(kept(tmp_path / "run")["private_labels"])]
        if (tmp_path / "run" / "stages" / "2").exists():
            labels.append(len(kept(tmp_path / "run" / "stages" / "2")["private_labels"]))
        assert labels == [360, 240][: len(labels)]

    monkeypatch.setattr(Stages, "create", fails_once)
    method = "kind: lp_mst, epsilon: 1.5, stages: 2, fractions: [0.6, 0.4]"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, method, progress=on_the_disk)
    assert drawn == [(360,), (240,)]
    assert not (tmp_path / "run" / "stages" / "2").exists()
    part = tmp_path / "run" / "stages" / ".2.labeldp-partial"  # as a kill leaves it
    part.mkdir()
    (part / "kept.npz").write_bytes(b"labels that were never used")
    first = run(tmp_path, method, resume=True, progress=on_the_disk)
    assert not part.exists()
    assert drawn == [(360,), (240,), (240,)]  # nobody ever saw the second draw
    again = run(tmp_path, method, resume=True)
    assert len(drawn) == 3
    jax.tree.map(np.testing.assert_array_equal, first.params, again.params)
    (tmp_path / "run" / "stages" / "2").rename(tmp_path / "gone")
    with pytest.raises(RunFolderError, match=r"stages/2: is missing, so the run cannot resume"):
        run(tmp_path, method, resume=True)
    assert len(drawn) == 3


DRIVER = f"""{HOLD}
import sys
import numpy as np
from labeldp_trainer.cli import train_command
from labeldp_trainer import randomize

def words(*shape):
    with open("drawn.txt", "a") as file:
        file.write(f"{{shape[0]}}\\n")
    return np.random.default_rng(shape[0]).integers(0, 2**64, shape, dtype=np.uint64)

randomize.random_words = words
hold("2", 12)
train_command(sys.argv[1:])
"""


def test_kill_in_the_second_stage_and_resume(tmp_path):
    write_problem(tmp_path, 600)
    base = CONFIG.replace("epochs: 4", "epochs: 24, checkpoint_every: 4, early_stopping: {}")
    (tmp_path / "train.yaml").write_text(config(THREE, base))
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, "driver.py", "train.yaml", "-o", "cut", "--quiet"]
    metrics = tmp_path / "cut" / "stages" / "2" / "metrics.jsonl"
    kill_behind(6, metrics, command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, cwd=tmp_path)
    assert not (tmp_path / "cut" / "stages" / "3").exists()
    assert (tmp_path / "drawn.txt").read_text() == "300\n180\n"
    drawn = []

    def words(*shape):
        drawn.append(shape[0])
        return np.random.default_rng(shape[0]).integers(0, 2**64, shape, dtype=np.uint64)

    with words_from(words):
        cut = run(tmp_path, THREE, "cut", base, resume=True)
        assert drawn == [120]  # with those of the killed process, each label once
        whole = run(tmp_path, THREE, "whole", base)
    assert drawn == [120, 300, 180, 120]
    jax.tree.map(np.testing.assert_array_equal, cut.params, whole.params)
    assert cut.metrics == whole.metrics
    for ours, theirs in zip(private_labels(cut.folder), private_labels(whole.folder), strict=True):
        np.testing.assert_array_equal(ours, theirs)
