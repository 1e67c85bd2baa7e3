"""User-level privacy of the methods that randomize labels themselves: L labels pay L times."""

import json
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer import RunFolderError

from trainer.tests.label_method_helpers import CONFIG, problem, run, statement

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


def test_a_statement_is_not_rounded_down(tmp_path):
    """The nearest float to 3ε is written as less than 3ε."""
    write(tmp_path)
    epsilon, most = 0.30000000000000004, 3
    options = f"user_column: user, max_examples_per_user: {most}"
    run(tmp_path, f"kind: alibi, epsilon: {epsilon!r}, {options}", base=SHORT)
    promised = json.loads((tmp_path / "run" / "privacy.json").read_text())["epsilon"]
    assert Fraction(repr(promised)) >= most * Fraction(repr(epsilon))
    assert promised < most * epsilon * (1 + 1e-15)
