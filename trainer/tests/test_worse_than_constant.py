"""A run says when one prediction for all rows would have been better."""

import numpy as np
import pytest
from labeldp_trainer import parse_config, train

from trainer.tests.command import document, labeldp, written
from trainer.tests.one_release import release_helpers as release
from trainer.tests.trainer_helpers import CLASSES, CONFIG, write_tables

BAD = {
    "numbers": (CONFIG.replace("offset: 4.5", "offset: 450"), "predicting the mean"),
    "classes": (
        CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]").replace(
            "mlp, hidden: [8], embedding: 2}", "linear, scale: 1000}"
        ),
        "giving the shares of the classes",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_run_says_so_and_writes_it_down(tmp_path, case):
    write_tables(tmp_path)
    text, words = BAD[case]
    text = text.replace("learning_rate: 0.02", "learning_rate: 1e-9")
    result = train(parse_config(text, "t.yaml", tmp_path), tmp_path / "run")
    assert document(tmp_path / "run")["notes"] == list(result.notes)
    assert any(words in note for note in result.notes)
    assert all("worse than always" in note for note in result.notes)


def notes_of(directory, text, name):
    labeldp("train", written(directory, text, name), "-o", directory / name, "--quiet")
    return document(directory / name).get("notes", [])


@pytest.mark.parametrize("text", [release.CLASSES, release.NUMBERS], ids=["classes", "numbers"])
def test_a_release_of_few_rows_warns_without_a_test_set(tmp_path, text):
    """From features, ε and δ: the labels are of no consequence."""
    alone = text.replace(", test: test.npz", "")
    release.write_archives(tmp_path, count=20)
    few = alone.replace("epsilon: 2", "epsilon: 0.2")
    (note,) = notes_of(tmp_path, few, "few")
    assert note.startswith("the model is expected to be no better than a constant: 20 rows are too")
    with np.load(tmp_path / "train.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "train.npz", **{**arrays, "y": arrays["y"] * 0, "number": 0 * arrays["y"]})
    assert notes_of(tmp_path, few, "other") == [note]
    tested = text.replace("epsilon: 2", "epsilon: 0.2")
    assert not any("expected" in said for said in notes_of(tmp_path, tested, "tested"))
    release.write_archives(tmp_path)
    assert notes_of(tmp_path, alone, "many") == []


def test_effects_that_are_hidden_by_noise_are_a_warning_without_a_test_set(tmp_path):
    """From the release alone: the strongest effect is under 0.1 of its error, or 40 times it."""
    notes = {}
    for rows, epsilon, test in ((30, 0.1, ""), (30, 0.1, ", test: test.parquet"), (3000, 1, "")):
        write_tables(tmp_path, rows)
        text = (
            "version: 1\nname: few\nmethod: {kind: staged_release, "
            f"epsilon: {epsilon}, delta: 1e-5, label_range: [0, 9]}}\n"
            f"data: {{kind: table, train: train.parquet{test}, label: y, numeric: [a, b]}}\n"
        )
        name = f"run-{rows}{bool(test)}"
        notes[rows, bool(test)] = notes_of(tmp_path, text, name)
    (note,) = notes[30, False]
    assert note.startswith("no column, or pair of columns, has an effect that is larger than its")
    assert note not in notes[30, True] and notes[3000, False] == []
