"""LightGBM and XGBoost with our objectives and presets, and inside the wrappers."""

import os
import pickle

import numpy as np
import pytest
from labeldp_learn import (
    ForwardLogLoss,
    PrivateLabelClassifier,
    PrivateLabelRegressor,
    PrivateLabels,
    UnbiasedPoissonLoss,
    UnbiasedSquaredLoss,
    boosting_objective,
    boosting_preset,
)
from labeldp_verify.opening import open_artifact

from learn.tests.drawn import NUMBERS, SETS, drawn

ROWS = 20_000


def library(name):
    try:
        return __import__(name)
    except ImportError:
        if os.environ.get("LABELDP_ALL") == "1":
            raise
        pytest.skip(f"{name} is not installed: learn/tests/boosters/install")


def lightgbm(private, x, loss, new, classes=1):
    lgb = library("lightgbm")
    start = loss.start(private)
    data = lgb.Dataset(
        x, loss.labels(private), init_score=np.tile(start, (len(x), *[1] * start.ndim))
    )
    params = boosting_preset(private, loss).lightgbm()
    params |= {"objective": boosting_objective(loss), "num_class": classes}
    model = lgb.train({**params, "num_threads": 1, "verbose": -1}, data)
    return start + model.predict(new)


def xgboost(private, x, loss, new, classes=1):
    xgb = library("xgboost")
    start = loss.start(private)
    margin = np.tile(start, (len(x), *[1] * start.ndim))
    data = xgb.DMatrix(x, loss.labels(private), base_margin=margin)
    preset = boosting_preset(private, loss)
    params = {**preset.xgboost(), "nthread": 1, "disable_default_eval_metric": True}
    del params["n_estimators"]
    if classes > 1:
        params["num_class"] = classes
    model = xgb.train(params, data, preset.rounds, obj=boosting_objective(loss))
    given = xgb.DMatrix(new, base_margin=np.tile(start, (len(new), *[1] * start.ndim)))
    return model.predict(given, output_margin=True)


def features(places, count):
    """Two columns: the first says a half of the rows' label, the second nothing."""
    generator = np.random.default_rng(1)
    shown = np.where(generator.random(len(places)) < 0.5, places, generator.integers(count))
    return np.stack([shown, generator.random(len(places))], axis=1).astype(float)


@pytest.mark.parametrize("fit", [lightgbm, xgboost])
@pytest.mark.parametrize(
    "loss", [UnbiasedSquaredLoss(), UnbiasedPoissonLoss()], ids=["²", "Poisson"]
)
def test_numbers_are_predicted_better_than_by_a_constant(fit, loss):
    artifact = open_artifact(NUMBERS)
    places = np.random.default_rng(0).integers(0, artifact.label.size, 3 * ROWS)
    truth, x = np.array(list(artifact.label.listed), float)[places], features(places, 12)
    private = PrivateLabels(artifact, drawn(artifact, places))
    scores = fit(private, x, loss, x)
    found = np.exp(scores) if isinstance(loss, UnbiasedPoissonLoss) else scores
    assert np.mean((found - truth) ** 2) < 0.9 * truth.var()


@pytest.mark.parametrize("fit", [lightgbm, xgboost])
def test_classes_behind_sets_are_found(fit):
    artifact = open_artifact(SETS)
    places = np.random.default_rng(0).integers(0, 6, ROWS)
    loss, x = ForwardLogLoss(artifact), features(places, 6)
    private = PrivateLabels(artifact, drawn(artifact, places))
    probabilities = loss.probabilities(fit(private, x, loss, x, classes=6))
    assert -np.log(probabilities[np.arange(ROWS), places]).mean() < 0.97 * np.log(6)


@pytest.mark.parametrize(("name", "kind"), [("lightgbm", "LGBM"), ("xgboost", "XGB")])
def test_their_estimators_work_inside_the_wrappers(name, kind):
    module = library(name)
    quiet = {"verbose": -1} if name == "lightgbm" else {}
    artifact = open_artifact(SETS)
    places = np.random.default_rng(0).integers(0, 6, ROWS)
    x, column = features(places, 6), drawn(artifact, places)
    params = getattr(boosting_preset(PrivateLabels(artifact, column)), name)()
    inner = getattr(module, f"{kind}Classifier")(**params, **quiet, n_jobs=1)
    model = PrivateLabelClassifier(inner, artifact).fit(x, column)
    truth = np.array(PrivateLabels(artifact, column).labels)[places]
    assert (model.predict(x) == truth).mean() > 0.4
    numbers = open_artifact(NUMBERS)
    places = np.random.default_rng(0).integers(0, 12, ROWS)
    x, column = features(places, 12), drawn(numbers, places)
    params = getattr(boosting_preset(PrivateLabels(numbers, column)), name)()
    inner = getattr(module, f"{kind}Regressor")(**params, **quiet, n_jobs=1)
    found = PrivateLabelRegressor(inner, numbers).fit(x, column).predict(x)
    truth = np.array(list(numbers.label.listed), float)[places]
    assert np.mean((found - truth) ** 2) < 0.95 * truth.var()


@pytest.mark.parametrize(("name", "kind"), [("lightgbm", "LGBM"), ("xgboost", "XGB")])
def test_their_estimators_give_weights_to_an_objective_and_can_be_pickled(name, kind):
    """LightGBM ignored the weights, and XGBoost ended with an error."""
    module = library(name)
    quiet = {"verbose": -1} if name == "lightgbm" else {}
    estimator = getattr(module, f"{kind}Regressor")
    given = {
        "n_estimators": 200,
        "n_jobs": 1,
        "objective": boosting_objective(UnbiasedSquaredLoss()),
    }
    x, high = np.arange(400)[:, None] // 200, np.arange(400) % 2
    model = estimator(**given, **quiet).fit(x, 8.0 * high + x[:, 0], sample_weight=1 + 2 * high)
    for one in (model, pickle.loads(pickle.dumps(model))):
        assert one.predict(x) == pytest.approx(6 + x[:, 0], abs=0.1)
