"""docs/tutorial.md, from the first block to the last, in an empty folder."""

import csv
import json

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.docs.pages import blocks_of, require_shown, run_page

pytestmark = pytest.mark.slow


def labeldp(words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder after all blocks have run."""
    pytest.importorskip("labeldp_trainer")
    run = run_page("tutorial.md", tmp_path_factory.mktemp("tutorial"))
    require_shown(run)
    return run.folder


def test_it_ends_with_two_models_and_a_statement(folder):
    losses = {}
    for run in ("run", "baseline"):
        losses[run] = json.loads((folder / run / "result.json").read_text())["test_loss"]
    # The labels scatter with a variance of 4 around a mean that itself has a variance of about 6.
    assert losses["baseline"] < 3 and losses["run"] < 4.5
    assert "ε = 3" in (folder / "run" / "privacy.txt").read_text(encoding="utf-8")


def test_the_true_labels_are_not_in_what_leaves_the_owner(folder):
    files = [(folder / name).read_text() for name in ("train.csv", "private.csv")]
    true, private = (list(csv.reader(text.splitlines()))[1:] for text in files)
    assert [row[:3] for row in true] == [row[:3] for row in private]
    same = sum(float(a[3]) == float(b[3]) for a, b in zip(true, private, strict=True))
    assert same < len(true) / 2


def test_training_on_one_release(folder, inside):
    """The first block of docs/training.md, on the tables of the tutorial."""
    block, *_ = blocks_of("training.md")
    inside(folder)
    (folder / block.file_name).write_text(block.text, encoding="utf-8")
    printed = labeldp(["train", block.file_name, "-o", "model"])
    statement = (folder / "model" / "privacy.txt").read_text(encoding="utf-8")
    assert "(ε = 1, δ = 1e-06)" in statement and len(printed.splitlines()) <= 15
    assert "  privacy        ε = 1, δ = 1e-06 for each label; a person with several" in printed
    assert "  keep secret    the true labels\n  not covered    metrics on the test set" in printed
    assert printed.splitlines()[-1] == "trained with label privacy: ε = 1, δ = 1e-06"
    again = ["--resume", "--verbose"]
    assert statement in labeldp(["train", block.file_name, "-o", "model", *again])
    loss = json.loads((folder / "model" / "result.json").read_text())["test_loss"]
    assert loss < 3
    labeldp(["predict", "model", "test.csv", "-o", "predicted.csv", "--quiet"])
    header = (folder / "predicted.csv").read_text().splitlines()[0]
    assert header.split(",")[-1].strip('"') == "prediction"


def test_embeddings_of_another_library(folder, inside):
    """The blocks of docs/representations.md."""
    script, config = blocks_of("representations.md")
    inside(folder)
    (folder / config.file_name).write_text(config.text, encoding="utf-8")
    exec(compile(script.text, script.file_name, "exec"), {})
    labeldp(["train", config.file_name, "-o", "embedded", "--quiet"])
    result = json.loads((folder / "embedded" / "result.json").read_text())
    assert result["test_mse"] < result["baselines"]["constant"]["mse"]
