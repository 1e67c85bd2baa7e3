"""docs/own-tools.md, and the pages that continue it, from the first block to the last."""

import importlib.util

import numpy as np
import pytest
from sklearn.metrics import log_loss

from tests.docs.pages import run_page

LIBRARIES = ("lightgbm", "xgboost", "torch")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the blocks define, but those of libraries that are not installed."""

    def runs(block):
        library = block.text.partition("\n")[0].removeprefix("# ")
        return library not in LIBRARIES or importlib.util.find_spec(library)

    folder = tmp_path_factory.mktemp("own-tools")
    names = run_page("own-tools.md", folder).names
    run_page("evaluate.md", folder, names=names)
    return run_page("boosting.md", folder, runs, names).names


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
