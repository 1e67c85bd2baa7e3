"""Starting values of boosting: more noise means larger leaves, fewer rounds and more pull."""

import numpy as np
import pytest
from labeldp_learn import ForwardLogLoss, PrivateLabels, UnbiasedPoissonLoss, boosting_preset
from labeldp_verify.opening import open_artifact

from learn.tests.drawn import NUMBERS, SETS, drawn, response

CALM, LOUD = response((0, 1), rare=50), response((0, 1), rare=3)


def of(artifact, rows):
    artifact = artifact if not hasattr(artifact, "exists") else open_artifact(artifact)
    return PrivateLabels(artifact, drawn(artifact, np.arange(rows) % artifact.label.size))


def test_noise_means_larger_leaves_fewer_rounds_and_more_pull():
    calm, loud = boosting_preset(of(CALM, 20_000)), boosting_preset(of(LOUD, 20_000))
    assert calm.ratio < loud.ratio and calm.worth > loud.worth
    assert calm.rows_in_leaf < loud.rows_in_leaf and calm.pull < loud.pull
    assert calm.depth >= loud.depth
    assert calm.rounds * 2**calm.depth > loud.rounds * 2**loud.depth


def test_the_ratio_is_that_of_the_definition():
    """Randomized response of two classes: Var = q(1 − q)/κ² for each of the two one-hot columns."""
    preset, private = boosting_preset(of(LOUD, 40_000)), of(LOUD, 40_000)
    kept = private.matrix().values[0, 0] - private.matrix().values[1, 0]
    assert preset.ratio == pytest.approx(0.25 / kept**2 / 0.25, rel=0.05)
    assert preset.rows_in_leaf == round(20 * preset.ratio)


@pytest.mark.parametrize("artifact", [NUMBERS, SETS], ids=["numbers", "sets"])
def test_each_library_gets_its_own_names(artifact):
    private = of(artifact, 20_000)
    preset = boosting_preset(private)
    names = set(preset.lightgbm()) | set(preset.xgboost())
    assert names == {
        "n_estimators", "learning_rate", "max_depth", "num_leaves", "min_child_samples",
        "min_child_weight", "reg_lambda",
    }  # fmt: skip
    assert preset.hist_gradient_boosting()["early_stopping"] is False
    copies = 1 if artifact is NUMBERS else len(private.expanded().rows) / private.rows
    assert preset.lightgbm()["min_child_samples"] == round(preset.rows_in_leaf * copies)


def test_a_loss_has_its_own_second_derivatives():
    private = of(SETS, 20_000)
    loss = ForwardLogLoss(open_artifact(SETS))
    preset = boosting_preset(private, loss)
    assert 0 < preset.information < boosting_preset(private).information
    assert preset.xgboost()["min_child_weight"] == preset.rows_in_leaf * preset.information
    counts = of(NUMBERS, 20_000)
    assert boosting_preset(counts, UnbiasedPoissonLoss()).information == pytest.approx(
        counts.targets().mean()
    )
