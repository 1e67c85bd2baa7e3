"""Multi-stage training: every label once, on the disk before it is used, better than one stage."""

import jax
import numpy as np
import pytest
from labeldp_trainer import RunFolderError
from labeldp_trainer.run.checkpoints import Stages

from trainer.tests.label_method_helpers import (
    CONFIG,
    kept,
    problem,
    run,
    statement,
    write_problem,
)

pytestmark = pytest.mark.slow


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
