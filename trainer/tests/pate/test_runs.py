"""``method: {kind: pate}`` from a config to a run folder, and what stops it."""

import os
import sys

import numpy as np
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.methods.published.pate import VOTE, squared_sensitivity

from trainer.tests.command import document, labeldp, written
from trainer.tests.kills import kill_when
from trainer.tests.noise import nothing_is_drawn

pytestmark = pytest.mark.slow

CONFIG = """
version: 1
name: votes
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
loss: cross_entropy
method: {kind: pate, epsilon: 4, delta: 1e-5}
"""
USERS = CONFIG.replace("1e-5", "1e-5, user_column: user, max_examples_per_user: 3")


def write_heaps(directory, count=1500):
    """Nine heaps of rows, three of each class: no line through all rows tells classes apart."""
    centres = np.random.default_rng(5).normal(size=(9, 6)) * 3
    for name, n, seed in (("train", count, 0), ("test", 300, 1)):
        random = np.random.default_rng(seed)
        heap = random.integers(0, 9, n)
        x = (centres[heap] + random.normal(size=(n, 6))).astype(np.float32)
        np.savez(directory / f"{name}.npz", x=x, y=heap % 3, user=np.arange(n) // 3)


@pytest.fixture
def place(tmp_path):
    write_heaps(tmp_path)
    return tmp_path


def test_a_student_learns_from_votes(place):
    text = CONFIG.replace("epsilon: 4", "epsilon: 8")
    labeldp("train", written(place, text), "-o", place / "run", "--quiet")
    result = document(place / "run")
    ceiling = CONFIG.replace("pate, epsilon: 4, delta: 1e-5", "none")
    labeldp("train", written(place, ceiling), "-o", place / "none", "--quiet")
    best = document(place / "none")["test"]["accuracy"]
    assert result["test"]["accuracy"] > best - 0.1 > 0.5
    found = document(place / "run", "privacy")
    assert (found["epsilon"], found["delta"], found["method"]) == (8, 1e-5, "pate")
    details = found["details"]
    assert details["squared_sensitivity"] == squared_sensitivity(details["queries"])
    assert details["proved_delta"] <= 1e-5 and details["coordinates"] == 3 * details["queries"]
    assert details["steps_in_a_vote"] == VOTE and details["unit"] == "label"
    assert found["secret"] == ["the true labels"]
    again = "Training again lets teachers vote again and spends (ε = 8, δ = 1e-05) again. "
    assert again + "Resuming this run does not." in found["statement"]
    assert "A person with several labels spends ε for each of them." in found["statement"]
    with np.load(place / "run" / "kept.npz") as kept:
        assert kept["noisy_votes"].shape == (details["queries"], 3)
        assert len(kept["voted_rows"]) == details["queries"]


def voted(place, text, labels, name, seen):
    """The votes of a run in steps, and what its statement says of their sensitivity."""
    with np.load(place / "train.npz") as arrays:
        old = dict(arrays)
    np.savez(place / "train.npz", **{**old, "y": labels})
    run = train(parse_config(text, directory=place), place / name)
    return seen[-1] * VOTE, run.statement.details["squared_sensitivity"]


@pytest.mark.parametrize("text", [CONFIG, USERS], ids=["labels", "users"])
def test_the_statement_bounds_what_a_unit_moves(tmp_path, noiseless, text):
    """From the file to the counts: the row of each label, or the rows of each user."""
    place = tmp_path
    write_heaps(place, 300)
    text = text.replace("epsilon: 4", "epsilon: 8, teachers: 60, queries: 5")
    with np.load(place / "train.npz") as arrays:
        labels, users = arrays["y"], arrays["user"]
    before, stated = voted(place, text, labels, "before", noiseless)
    distances = []
    for unit in range(0, 40, 5):
        mine = users == unit if "user" in text else np.arange(300) == unit
        other = np.where(mine, (labels + 1) % 3, labels)
        after, again = voted(place, text, other, f"run{unit}", noiseless)
        assert again == stated == squared_sensitivity(5)
        distances.append(int(np.square(before - after).sum()))
    assert 0 < max(distances) <= stated


def test_killed_behind_the_votes(place):
    """The votes are there before anything is fitted, and are not cast or drawn again."""
    config, cut = written(place, CONFIG), place / "cut"
    held = (
        "import time\nfrom labeldp_trainer.methods.published import pate\n"
        "trial = iter([pate.fitted_votes])\n"  # with noise alone, before labels are read
        "pate.fitted_votes = lambda *a: next(trial, lambda *_: time.sleep(10_000))(*a)\n"
        "from labeldp_trainer.cli import train_command\ntrain_command()\n"
    )
    command = [sys.executable, "-c", held, str(config), "-o", str(cut), "--quiet"]
    kill_when((cut / "kept.npz").exists, command, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    kept = (cut / "kept.npz").read_bytes()
    assert not (cut / "result.json").exists()
    for _ in range(2):  # and no votes if it is finished
        with nothing_is_drawn():
            labeldp("train", config, "-o", cut, "--resume", "--quiet")
        assert (cut / "kept.npz").read_bytes() == kept and (cut / "result.json").exists()


WRONG = {
    "more teachers than rows": ("epsilon: 4", "epsilon: 4, teachers: 41", "method.teachers"),
    "ε out of reach": ("epsilon: 4", "epsilon: 0.01", "method.epsilon: is too small"),
    "ε out of reach of these": (
        "epsilon: 4",
        "epsilon: 1, teachers: 10, queries: 40",
        "method.epsilon: is too small: the noise on each count has a standard deviation of 33.4, "
        "but there are only 10 teachers",
    ),
    "too many classes": ("classes: 3", "classes: 1001", "data.classes"),
    "a label as user": (
        "1e-5",
        "1e-5, user_column: y, max_examples_per_user: 1",
        "method.user_column",
    ),
}


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.replace(" ", "_"))
def test_one_clear_error_before_anything_is_drawn(tmp_path, undrawn, case):
    write_heaps(tmp_path, 40)
    old, new, key = WRONG[case]
    assert old in CONFIG
    config = written(tmp_path, CONFIG.replace(old, new))
    before = sorted(tmp_path.iterdir())
    said = labeldp("train", config, "-o", tmp_path / "run", code=2).splitlines()
    lines = [line for line in said if not line.startswith("representation ")]  # progress
    assert lines[0].startswith("labeldp: ") and f": {key}" in lines[0]
    assert sum(line.startswith("labeldp: ") for line in lines) == 1
    assert sorted(tmp_path.iterdir()) == before
