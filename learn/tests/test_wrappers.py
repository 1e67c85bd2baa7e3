"""The estimators on private labels: corrected probabilities, sets, groups, searches, pipelines."""

import numpy as np
import pytest
import sklearn
from labeldp_learn import (
    PrivateLabelClassifier,
    PrivateLabelError,
    PrivateLabelRegressor,
    PrivateLabels,
)
from labeldp_learn.inversion import true_probabilities
from labeldp_learn.private_labels import tables_of
from labeldp_verify.opening import open_artifact
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from learn.tests.drawn import FILES, GROUPS, JOINT, NUMBERS, RESPONSE, SETS, drawn, response
from learn.tests.test_private_labels import frame

BINARY = response((0, 1), rare=4)


def two_classes(rows=40_000, seed=0):
    """One feature, the probability of class 1, its labels and private labels."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 1))
    chance = 1 / (1 + np.exp(1 - 1.5 * x[:, 0]))
    true = (generator.random(rows) < chance).astype(int)
    return x, chance, true, drawn(BINARY, true, seed)


def six_classes(artifact=None, rows=30_000):
    artifact = open_artifact(SETS) if artifact is None else artifact
    places = np.random.default_rng(0).integers(0, 6, rows)
    x = np.eye(6)[np.where(np.random.default_rng(1).random(rows) < 0.7, places, 0)]
    return x, places, drawn(artifact, places)


def test_probabilities_of_the_private_label_are_corrected():
    x, chance, _, private = two_classes()
    plain = LogisticRegression().fit(x, private).predict_proba(x)[:, 1]
    found = PrivateLabelClassifier(LogisticRegression(), BINARY).fit(x, private)
    corrected = found.predict_proba(x)[:, 1]
    assert abs(plain.mean() - chance.mean()) > 0.05
    assert abs(corrected.mean() - chance.mean()) < 0.02
    assert np.mean((corrected - chance) ** 2) < 0.1 * np.mean((plain - chance) ** 2)


@pytest.mark.parametrize(
    "inner", [GaussianNB(), LogisticRegression(), LinearDiscriminantAnalysis()], ids=str
)
def test_sets_are_expanded_or_drawn(inner):
    x, places, private = six_classes()
    model = PrivateLabelClassifier(inner, SETS, random_state=0).fit(x, private)
    names = np.array(PrivateLabels(SETS, private).labels)
    assert (model.predict(x) == names[places]).mean() > 0.6
    assert np.allclose(model.predict_proba(x).sum(axis=1), 1)


def test_an_exact_model_of_private_labels_gives_exact_probabilities():
    generator = np.random.default_rng(0)
    true = generator.dirichlet(np.ones(4), 50)
    mixing = 0.4 * np.eye(4) + 0.6 * generator.dirichlet(np.ones(4), 4)
    uniform = np.full(4, 0.25)
    assert np.allclose(true_probabilities(true @ mixing, mixing, uniform, 0.0), true)
    smooth = true_probabilities(true @ mixing, mixing, uniform, 0.1)
    assert np.allclose(smooth, 0.9 * true + 0.1 * uniform)
    fewer = mixing[:, :3] / mixing[:, :3].sum(axis=1, keepdims=True)  # which has no inverse
    found = true_probabilities(true @ fewer, fewer, uniform, 0.0)
    assert np.allclose(found @ fewer, true @ fewer, atol=1e-3) and (found >= 0).all()


def test_smoothing_is_chosen_by_the_likelihood_of_private_labels():
    x, _, _, private = two_classes()
    noise = np.random.default_rng(3).normal(size=x.shape)
    for inner, given, least, most in (
        (LogisticRegression(), x, 0, 0.5),
        (KNeighborsClassifier(50), noise, 0.7, 1),
    ):
        model = PrivateLabelClassifier(inner, BINARY, smoothing="auto")
        assert least <= model.fit(given[:8000], private[:8000]).smoothing_ <= most
    with pytest.raises(PrivateLabelError, match="smoothing"):
        PrivateLabelClassifier(GaussianNB(), BINARY, smoothing=2).fit(x, private)


def test_each_table_is_fitted_apart():
    """Labels are classes of numbers here: outputs that are no labels are classes of their own."""
    artifact = open_artifact(GROUPS)
    columns = frame(artifact, 20_000)
    tables = tables_of(artifact.groups, columns, 20_000)
    labels = np.arange(20_000) % 2 * (artifact.label.size - 1)
    private = drawn(artifact, labels, tables=tables)
    x = columns.assign(shown=labels.astype(float))
    inner = make_pipeline(Shown(), LogisticRegression(max_iter=1000))
    model = PrivateLabelClassifier(inner, artifact).fit(x, private)
    assert set(model.estimators_) == set(tables.tolist())
    right = np.array(list(artifact.label.listed))[labels] == model.predict(x)
    assert right.mean() > 0.9
    bare = PrivateLabelClassifier(LogisticRegression(max_iter=1000), artifact)
    bare.fit(x[["shown"]].to_numpy(), private, columns=columns)
    again = bare.predict_proba(x[["shown"]].to_numpy(), columns=columns)
    assert np.allclose(again, model.predict_proba(x), atol=0.05)
    with pytest.raises(PrivateLabelError, match="come from a frame"):
        bare.predict(x[["shown"]].to_numpy())


class Shown(sklearn.base.TransformerMixin, sklearn.base.BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[["shown"]].to_numpy()


def test_a_regressor_fits_targets_of_groups_with_weights():
    artifact = open_artifact(GROUPS)
    columns = frame(artifact, 40_000)
    tables = tables_of(artifact.groups, columns, 40_000)
    labels = np.arange(40_000) % 2 * (artifact.label.size - 1)
    x = columns.assign(shown=labels.astype(float))
    private = drawn(artifact, labels, tables=tables)
    with (
        pytest.warns(UserWarning, match="cannot average")
        if artifact.certificate.mechanism in ("rr_on_bins",)
        else _nothing()
    ):
        model = PrivateLabelRegressor(Recorded(), artifact).fit(x, private)
    assert len(np.unique(model.estimator_.weights)) > 1
    low, high = artifact.label.min, artifact.label.max
    assert ((model.predict(x) >= low) & (model.predict(x) <= high)).all()


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


class Recorded(Ridge):
    def fit(self, X, y, sample_weight=None):
        self.weights = sample_weight
        return super().fit(X[["shown"]], y, sample_weight)

    def predict(self, X):
        return super().predict(X[["shown"]])


def test_predictions_stay_inside_the_range_of_labels():
    artifact = open_artifact(NUMBERS)
    x = np.linspace(-1, 12, 5000)[:, None]
    private = drawn(artifact, np.clip(x[:, 0], 0, 11).astype(int))
    far = np.array([[-100.0], [100.0]])
    model = PrivateLabelRegressor(Ridge(), NUMBERS).fit(x, private)
    assert model.predict(far).tolist() == [artifact.label.min, artifact.label.max]
    assert PrivateLabelRegressor(Ridge(), NUMBERS, clip=False).fit(x, private).predict(far)[1] > 20


@pytest.mark.filterwarnings("ignore:.*cannot average")
def test_weights_may_have_any_sum():
    """Weights with the sum 1 counted as one row, whose best target is the mean of all labels."""
    artifact = open_artifact(FILES / "plain/randomized-response.onnx")
    places = np.arange(20_000) % 12
    x, private = np.eye(12)[places], drawn(artifact, places)
    model = PrivateLabelRegressor(LinearRegression(), artifact).fit(x, private)
    scaled = PrivateLabelRegressor(LinearRegression(), artifact)
    scaled.fit(x, private, sample_weight=np.full(20_000, 1 / 20_000))
    assert np.allclose(scaled.predict(x), model.predict(x)) and scaled.bias_ == model.bias_
    assert np.ptp(model.predict(x)) > 5


def test_labels_of_several_columns_are_combinations():
    artifact = open_artifact(JOINT)
    places = np.arange(8000) % 3
    private = drawn(artifact, places)
    x = np.eye(3)[places]
    model = PrivateLabelClassifier(GaussianNB(), artifact).fit(x, private)
    assert model.classes_.tolist() == sorted(
        artifact.label.name(i) for i in range(artifact.label.size)
    )
    numeric = [p.kind != "categorical" for p in artifact.label.parts]
    name = artifact.certificate.label_columns[numeric.index(True)]
    assert PrivateLabelRegressor(Ridge(), artifact, of=name).fit(x, private).predict(x).shape == (
        8000,
    )
    with pytest.raises(PrivateLabelError, match="classes or sets"):
        PrivateLabelRegressor(Ridge(), artifact).fit(x, private)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PrivateLabelClassifier(RidgeClassifier(), RESPONSE), "has no predict_proba"),
        (PrivateLabelRegressor(Ridge(), RESPONSE), "use PrivateLabelClassifier"),
        (PrivateLabelClassifier(DummyClassifier(), 3), "path or an Artifact"),
    ],
)
def test_what_does_not_fit_together_is_one_clear_error(model, words):
    values = np.array(open_artifact(RESPONSE).tables[0].values)
    with pytest.raises(PrivateLabelError, match=words):
        model.fit(np.zeros((len(values), 1)), values)
