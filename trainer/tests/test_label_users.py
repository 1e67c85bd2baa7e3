"""User-level privacy of the methods that randomize labels themselves: L labels pay L times."""

import json
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer import RunFolderError

from trainer.tests.label_method_helpers import CONFIG, kept, problem, run, statement
from trainer.tests.trainer_helpers import compile_text

USERS = "user_column: user, max_examples_per_user: 2"
SHORT = CONFIG.replace("epochs: 4", "epochs: 1")


def write(directory, rows=600, shift=0):
    users = np.roll(np.arange(rows) // 3, shift)  # three rows a user
    np.savez(directory / "train.npz", **problem(rows, 1), user=users)
    np.savez(directory / "test.npz", **problem(100, 2))


@pytest.mark.parametrize(
    ("method", "epsilon"),
    [
        ("kind: lp_mst, epsilon: 0.7, stages: 1", 1.4),
        ("kind: alibi, epsilon: 0.7", 1.4),
        ("kind: clusters, k: 2, epsilon_prior: 0.1, epsilon: 0.7", 1.6),
    ],
)
def test_the_statement_is_for_all_labels_of_a_user(tmp_path, method, epsilon):
    write(tmp_path)
    result = run(tmp_path, f"{method}, {USERS}", base=SHORT)
    said = statement(result.folder)
    assert said["epsilon"] == epsilon
    assert (said["details"]["unit"], said["details"]["labels"]) == ("user", 400)
    assert "replacing all labels of one user, with at most 2 rows of each user" in said["adjacency"]
    assert f"spends ε = {epsilon} again" in said["statement"]
    with np.load(result.folder / "kept.npz") as stored:
        assert len(stored["private_labels"]) == 400


def test_a_run_is_not_resumed_with_other_users(tmp_path):
    """Their rows would be others than those whose private labels are kept."""
    write(tmp_path)
    folder = run(tmp_path, f"kind: alibi, epsilon: 1, {USERS}", base=SHORT).folder
    assert "users_sha256" in json.loads((folder / "run.json").read_text())
    write(tmp_path, shift=1)
    with pytest.raises(RunFolderError, match="other users"):
        run(tmp_path, f"kind: alibi, epsilon: 1, {USERS}", base=SHORT, resume=True)


KEPT = {
    "kind: alibi, epsilon: 1": {
        "fewer rows": {"private_labels": lambda a: a[:350]},
        "fewer classes": {"private_labels": lambda a: a[:, 1:]},
        "floats": {"private_labels": lambda a: a.astype(float)},
    },
    "kind: lp_mst, epsilon: 1, stages: 1": {
        "fewer rows": {"private_labels": lambda a: a[:350]},
        "no class": {"private_labels": lambda a: a + 12},
        "negative": {"private_labels": lambda a: a - 12},
        "another stage": {"stage_of_example": lambda a: a + np.uint8(1)},
        "fewer stages": {"stage_of_example": lambda a: a[:350]},
    },
    "kind: clusters, k: 2, epsilon_prior: 0.5, epsilon: 1": {
        "fewer rows": {"private_labels": lambda a: a[:350]},
        "another cluster": {"cluster_of_example": lambda a: a + 2},
        "fewer clusters": {"cluster_of_example": lambda a: a[:350]},
        "more noise": {"noise_scale": lambda a: a * 2},
        "noise that is NaN": {"noise_scale": lambda a: a * np.nan},
        "one array more": {"more": lambda a: np.zeros(1)},
    },
    "kind: privatized, artifact: many.onnx": {
        "fewer rows": {"private_labels": lambda a: a[:350]},
        "columns": {"private_labels": lambda a: a[:, None]},
    },
}
SPEC = """
version: 1
name: many
label: {column: y, domain: {kind: integer, min: 0, max: 11}}
loss: zero_one
privacy: {epsilon: 1}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""


@pytest.mark.parametrize("method", KEPT)
def test_what_a_run_has_kept_must_fit_its_rows(tmp_path, method):
    """Private labels of 350 rows trained 400 without a message."""
    write(tmp_path, 400)
    compile_text(SPEC).write(tmp_path)
    path = run(tmp_path, method, base=SHORT).folder / "kept.npz"
    whole, good = path.read_bytes(), kept(path.parent)
    for name, changes in KEPT[method].items():
        damaged = good | {key: change(good.get(key)) for key, change in changes.items()}
        np.savez(path, **damaged)
        with pytest.raises(RunFolderError, match=r"or its kept\.npz is damaged"):
            run(tmp_path, method, base=SHORT, resume=True)
            pytest.fail(name)
    path.write_bytes(whole)
    run(tmp_path, method, base=SHORT, resume=True)


def test_a_statement_is_not_rounded_down(tmp_path):
    """The nearest float to 3ε is written as less than 3ε."""
    write(tmp_path)
    epsilon, most = 0.30000000000000004, 3
    options = f"user_column: user, max_examples_per_user: {most}"
    run(tmp_path, f"kind: alibi, epsilon: {epsilon!r}, {options}", base=SHORT)
    promised = json.loads((tmp_path / "run" / "privacy.json").read_text())["epsilon"]
    assert Fraction(repr(promised)) >= most * Fraction(repr(epsilon))
    assert promised < most * epsilon * (1 + 1e-15)


def test_stages_are_not_resumed_with_other_rows(tmp_path):
    write(tmp_path)
    run(tmp_path, "kind: lp_mst, epsilon: 1, stages: 1", base=SHORT)
    write(tmp_path, 500)
    with pytest.raises(RunFolderError, match="was started with other rows"):
        run(tmp_path, "kind: lp_mst, epsilon: 1, stages: 1", base=SHORT, resume=True)
