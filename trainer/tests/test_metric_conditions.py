"""What is printed of the test set is an estimate, and says so."""

import json
import math
import re

import pytest
from click.testing import CliRunner
from labeldp_trainer import parse_config, train
from labeldp_trainer.outcomes.runs import Run
from labeldp_trainer.outcomes.runs_table import runs_text

from labeldp_compile.cli import main
from trainer.tests.trainer_helpers import CLASSES, CONFIG, write_tables

COLOURS = CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]")
TEXTS = {
    "numbers": CONFIG,
    "colours": COLOURS.replace("name: small", "name: colours"),
    "private": COLOURS.replace("name: small", "name: private").replace(
        "kind: none", "kind: alibi, epsilon: 1.5"
    ),
}


def labeldp(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("place")
    write_tables(directory)
    for name, text in TEXTS.items():
        train(parse_config(text, "t.yaml", directory), directory / "runs" / name)
    return directory


def test_a_table_of_runs_says_what_its_metrics_are(place):
    text = labeldp("runs", place / "runs", "--html", place / "runs.html").stdout
    notes = [line for line in text.splitlines() if line.startswith("metrics are estimates")]
    found = json.loads(labeldp("runs", place / "runs", "--json").stdout)["runs"]
    rows = {run["rows_tested"] for run in found}
    assert len(notes) == 2 and rows == {200}
    assert all("200 test rows" in note and "no ε covers test labels" in note for note in notes)
    of_classes, of_numbers = sorted(notes, key=lambda note: "an accuracy" not in note)
    margin = float(re.search(r"at most ±([0-9.]+)", of_classes).group(1))
    exact = math.sqrt(math.log(2 / 0.05) / (2 * 200))  # Hoeffding (1963), Theorem 2
    assert exact <= margin <= 1.1 * exact
    assert "the best of several runs looks better than it is" in of_classes
    assert "no confidence interval is known" in of_numbers and "several" not in of_numbers
    page = (place / "runs.html").read_text(encoding="utf-8")
    assert all(note in page for note in notes)


def test_a_run_that_prints_test_metrics_says_whose_labels_they_show(place):
    (place / "again.yaml").write_text(CONFIG.replace("name: small", "name: again"))
    result = labeldp("train", place / "again.yaml", "-o", place / "again")
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("  test mse")]
    assert "always predicting the mean gives" in line and "estimates from 200 test rows" in line
    assert "keep the model and its metrics secret" in result.stdout.splitlines()[-1]


def test_a_run_of_an_older_version_has_no_margin(place):
    path = place / "runs" / "colours" / "result.json"
    before = path.read_text()
    facts = json.loads(before)
    del facts["rows_tested"]
    path.write_text(json.dumps(facts))
    try:
        text = labeldp("runs", path.parent).stdout
    finally:
        path.write_text(before)
    assert "estimates from the test rows" in text and "margin" not in text


def run_of(**facts):
    known = {
        "label": "rent",
        "method": "staged_release",
        "metric": "mse",
        "test": {"mse": 111889.6},
        "constant": {"mse": 29376.4},
    }
    return Run("r", "done", **known | facts)


def test_metrics_are_written_as_other_numbers_are():
    text = "\n".join(runs_text([run_of(epsilon=1.0)]))
    assert "predict the mean: 29,376" in text and "111,890" in text and "e+" not in text


def test_runs_without_a_test_set_have_no_metrics():
    untested = {"test": {}, "constant": {}}
    one = run_of(**untested)
    assert runs_text([one])[0] == "rent: not compared: no run has a test set"
    assert runs_text([one])[-1] == "no test set, so no metrics"
    text = "\n".join(runs_text([run_of(epsilon=e, **untested) for e in (1.0, 0.5)]))
    assert "estimates" not in text and "best" not in text and "test mse" not in text
    assert text.endswith("every run that draws noise spends it again")


def test_runs_that_drew_noise_say_that_their_epsilon_adds_up():
    words = "every run that draws noise spends it again"
    assert words in runs_text([run_of(epsilon=1.0), run_of(epsilon=0.5)])[-1]
    assert words not in runs_text([run_of(epsilon=1.0), run_of()])[-1]
