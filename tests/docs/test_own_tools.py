"""docs/own-tools.md, from the first block to the last, in an empty folder."""

import importlib.util
import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import log_loss

from labeldp_compile.cli import main
from tests.docs.blocks import blocks_of

LIBRARIES = ("lightgbm", "xgboost", "torch")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the blocks define; those of libraries that are not installed are only compiled."""
    found = {}
    folder = tmp_path_factory.mktemp("own-tools")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks_of("own-tools.md"):
            if block.file_name:
                (folder / block.file_name).write_text(block.text, encoding="utf-8")
            elif block.language == "sh":
                for line in block.text.splitlines():
                    run(folder, *shlex.split(line))
            else:
                library = block.text.partition("\n")[0].removeprefix("# ")
                code = compile(block.text, "own-tools.md", "exec")
                if library not in LIBRARIES or importlib.util.find_spec(library):
                    exec(code, found)
    return found


def run(folder, program, *words):
    if program == "python":
        (script,) = words
        exec(compile((folder / script).read_text("utf-8"), script, "exec"), {})
        return
    assert program == "labeldp"
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, (words, result.output)


def test_defaults_are_worse_than_a_constant_and_the_preset_is_better(names):
    assert names["default_mse"] > 1.1 * names["constant"]
    assert names["preset_mse"] < 0.95 * names["constant"]


def test_corrected_probabilities_are_better(names):
    truth = names["smokes"]
    assert abs(names["plain"].mean() - truth.mean()) > 0.05
    assert abs(names["corrected"].mean() - truth.mean()) < 0.04
    assert log_loss(truth, names["corrected"]) < log_loss(truth, names["plain"]) - 0.02


def test_classes_behind_sets_are_predicted(names):
    most = names["test"]["plan"].value_counts(normalize=True).max()
    assert names["accuracy"] > most + 0.05


def test_a_search_on_private_labels_refuses_what_learns_nothing(names):
    assert names["search"].best_params_["estimator__C"] > 1e-6


def test_the_boosters_learn_too(names):
    if "probabilities" in names:
        places = np.searchsorted([*"ABCDEF"], names["test"]["plan"])
        chosen = names["probabilities"][np.arange(len(places)), places]
        assert -np.log(chosen).mean() < np.log(6) - 0.05
    if "counts" in names:
        assert names["mse"](names["counts"]) < 0.95 * names["constant"]
