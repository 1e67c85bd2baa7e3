"""An archive does not say that it holds images before it is read."""

import json

import pytest
from labeldp_trainer import InputError, parse_config, read_coefficients, train
from labeldp_trainer.config.model import OF_IMAGES
from labeldp_trainer.outcomes.predict import open_trained
from labeldp_trainer.outcomes.runs import find_runs
from labeldp_trainer.outcomes.verified_release import verify_release

from trainer.tests.representations.representation_helpers import write_images

CONFIG = """
version: 1
name: images
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
loss: cross_entropy
method: %s
"""
RELEASE = "{kind: one_release, epsilon: 2, delta: 1e-5}"


def kept(run):
    return json.loads((run / "run.json").read_text())["representation"]["kind"]


def run_of(directory, method=RELEASE):
    run = directory / "runs" / "one"
    train(config := parse_config(CONFIG % method, "t.yaml", directory), run)
    return config, run


@pytest.mark.slow
def test_large_images_get_the_default_of_images(tmp_path):
    write_images(tmp_path, side=8)
    config, run = run_of(tmp_path)
    assert kept(run) == "joined"
    again = open_trained(run)
    assert again.loaded.config.representation == OF_IMAGES
    assert [found.representation for found in find_runs([run])] == ["joined"]
    assert all(check.ok for check in verify_release(config, run / "release.npz", published=run))
    (tmp_path / "train.npz").unlink()  # where the run goes, its data need not be
    assert open_trained(run).loaded.config.representation == OF_IMAGES


def test_images_that_are_too_small_for_wavelets_keep_components(tmp_path):
    write_images(tmp_path, side=6)
    run = run_of(tmp_path)[1]
    assert kept(run) == "pca"
    with pytest.raises(InputError, match="has no coefficients: its features are images"):
        read_coefficients(run)
