"""Metrics from private labels: unbiased by enumeration, with intervals that cover."""

import math

import numpy as np
import pytest
from labeldp_learn import (
    PrivateLabelClassifier,
    PrivateLabelError,
    PrivateLabelRegressor,
    PrivateLabels,
    calibration,
    evaluate,
    evaluation,
    scorer,
)
from labeldp_learn.evaluation import METRICS, Rows
from labeldp_learn.private_labels import tables_of
from labeldp_verify.forms import RealDomain
from labeldp_verify.opening import open_artifact
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from learn.tests.drawn import FILES, GROUPS, NUMBERS, RESPONSE, SETS, drawn, response, with_table
from learn.tests.test_private_labels import every_output, frame

BINARY = response((0, 1), rare=4)


def true_loss(metric, labels, predicted):
    """[k] the loss under each label, of one prediction for all rows."""
    if metric == "squared error":
        return (labels - predicted) ** 2
    if metric == "absolute error":
        return np.abs(labels - predicted)
    if metric == "Poisson loss":
        return predicted - labels * np.log(predicted)
    if metric == "log loss":
        return -np.log(predicted)
    return np.arange(len(labels)) == predicted.argmax()


def losses(metric, private, predicted):
    """[n] the loss of each row, that of row i on the i-th private label."""
    rows = Rows(private.opened, ["m"], lambda: [(private.codes, {}, None)])
    ((places, *_),) = rows.blocks()
    return METRICS[metric](rows, "m")(places, predicted).rows


@pytest.mark.parametrize("metric", ["squared error", "absolute error", "Poisson loss"])
@pytest.mark.parametrize("name", ["optimal-unbiased", "debiased-rr", "randomized-response"])
def test_metrics_of_numbers_are_unbiased_under_every_label(metric, name):
    artifact = open_artifact(FILES / f"plain/{name}.onnx")
    column, chances = every_output(artifact)
    labels = np.array(list(artifact.label.listed), float)
    found = losses(metric, PrivateLabels(artifact, column), np.full(len(column), 2.5))
    wanted = true_loss(metric, labels, 2.5)
    assert np.allclose(chances @ found, wanted, atol=1e-6 * wanted.max())


@pytest.mark.parametrize("metric", ["log loss", "accuracy"])
@pytest.mark.parametrize("artifact", [SETS, RESPONSE, BINARY], ids=["sets", "response", "binary"])
def test_metrics_of_classes_are_unbiased_under_every_label(metric, artifact):
    artifact = artifact if not hasattr(artifact, "exists") else open_artifact(artifact)
    column, chances = every_output(artifact)
    k = len(chances)
    one = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    found = losses(metric, PrivateLabels(artifact, column), np.tile(one, (len(column), 1)))
    wanted = true_loss(metric, np.arange(k), one)
    assert np.allclose(chances @ found, wanted, atol=1e-6)


def two_models(rows, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=rows)
    chance = 1 / (1 + np.exp(-x))
    true = (generator.random(rows) < chance).astype(int)
    worse = 1 / (1 + np.exp(-(x + 0.7 * generator.normal(size=rows))))
    return true, chance, worse


def test_an_area_of_a_rare_class_says_that_it_knows_nothing_instead_of_too_much():
    """So much noise that the rare class may have no rows: the interval is all of [0, 1]."""
    generator = np.random.default_rng(0)
    scores, whole = generator.random(200), 0
    for seed in range(20):
        private = PrivateLabels(BINARY, drawn(BINARY, np.zeros(200, int), seed=seed))
        (found,) = evaluate(private, {"m": scores}, ["AUC"])
        assert 0 <= found.low <= found.value <= found.high <= 1
        whole += (found.low, found.high) == (0, 1)
    assert whole >= 15
    both = evaluate(private, {"a": scores, "b": 1 - scores}, ["AUC"])[-1]
    assert (both.low, both.high, both.error) == (-1, 1, math.inf)


def test_areas_on_labels_without_noise_are_those_of_all_pairs():
    """Unbiased over pairs of different rows, ties counted half."""
    generator = np.random.default_rng(0)
    clear = response((0, 1), rare=2**32)
    true, scores = np.arange(60) % 2, generator.integers(0, 8, 60) / 8
    (found,) = evaluate(PrivateLabels(clear, true), {"m": scores}, ["AUC"])
    assert found.value == pytest.approx(roc_auc_score(true, scores), abs=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.95])
def test_intervals_of_few_rows_cover_by_enumeration(rows, accuracy):
    """Rows that were all alike had an interval without width: of ten rows, half of all groups."""
    artifact = response((0, 1), rare=50)
    kept = PrivateLabels(artifact, [1]).matrix().values[1, 1]
    chance = accuracy * kept + (1 - accuracy) * (1 - kept)
    covered = 0.0
    for right in range(rows + 1):
        private = PrivateLabels(artifact, [1] * right + [0] * (rows - right))
        (found,) = evaluate(private, {"m": np.ones(rows, int)}, ["accuracy"])
        likely = math.comb(rows, right) * chance**right * (1 - chance) ** (rows - right)
        covered += likely * (found.low <= accuracy <= found.high)
    assert covered > 0.93


def test_fewer_than_ten_rows_or_persons_have_no_interval():
    """With three rows, 95% intervals of absolute errors covered in 75% of the draws."""
    places = np.arange(90) % 12
    private = PrivateLabels(open_artifact(NUMBERS), drawn(open_artifact(NUMBERS), places))
    for count in (9, 10):
        rows, persons = np.arange(count), np.arange(90) % count
        for found in (
            evaluate(private.subset(rows), {"m": np.zeros(count)}, ["absolute error"]),
            evaluate(private, {"m": np.zeros(90)}, ["absolute error"], persons=persons),
        ):
            assert math.isfinite(found[0].error) == (count == 10) == (found[0].low > -math.inf)


def test_persons_without_rows_in_a_group_are_none_of_it():
    """They counted as persons without an error: the interval of one person had no width."""
    true, one, _ = two_models(600, 0)
    column = drawn(BINARY, true)
    by, persons = np.where(np.arange(600) < 500, "a", "b"), np.minimum(np.arange(600), 500)
    found = evaluate(PrivateLabels(BINARY, column), {"m": one}, by=by, persons=persons)
    assert all(m.error == math.inf for m in found if m.group == "b")
    few = persons % 250
    every = evaluate(PrivateLabels(BINARY, column), {"m": one}, by=by, persons=few)
    for name, group in (("a", slice(500)), ("b", slice(500, 600))):
        alone = evaluate(PrivateLabels(BINARY, column[group]), {"m": one[group]},
                         persons=few[group])  # fmt: skip
        own = [m for m in every if m.group == name]
        assert [(m.low, m.high) for m in own] == [(m.low, m.high) for m in alone]


@pytest.mark.parametrize(
    "column", [np.zeros(599), np.zeros(601), np.zeros((600, 2)), np.array([{}] * 600)]
)
def test_groups_and_persons_are_one_column_of_all_rows(column):
    true, one, _ = two_models(600, 0)
    private = PrivateLabels(BINARY, drawn(BINARY, true))
    for name in ("by", "persons"):
        with pytest.raises(PrivateLabelError, match="600 rows"):
            evaluate(private, {"m": one}, ["accuracy"], **{name: column})


def test_calibration_follows_the_true_means():
    true, chance, _ = two_models(40_000, 0)
    private = PrivateLabels(BINARY, drawn(BINARY, true))
    bins = calibration(private, chance)
    assert sum(one.rows for one in bins) == 40_000 and bins[-1].lift > 1.5
    assert bins[0].lift < 0.5
    assert np.mean([one.low <= one.predicted <= one.high for one in bins]) >= 0.8
    artifact = open_artifact(NUMBERS)
    places = np.random.default_rng(0).integers(0, 12, 4000)
    numbers = calibration(PrivateLabels(artifact, drawn(artifact, places)), places, bins=2)
    assert numbers[0].observed < numbers[1].observed


def test_deciles_are_those_of_sorted_rows(monkeypatch):
    """Equal predictions, 0 and −0 among them, are in one bin; the order of rows does not matter."""
    monkeypatch.setattr(evaluation, "_MOST_ROWS", 16)
    artifact, generator = open_artifact(NUMBERS), np.random.default_rng(0)
    private = PrivateLabels(artifact, drawn(artifact, generator.integers(0, 12, 500)))
    labels = np.array(list(artifact.label.listed), float)
    observed = private.unbiased(labels[:, None])[:, 0]
    wide = generator.normal(size=500) * generator.choice([1e-300, 1.0, 1e300], 500)
    for predicted in (wide, np.zeros(500) * generator.choice([-1, 1], 500), np.arange(500) % 3):
        different = len(set(predicted.tolist()))
        for bins in (1, 3, 7, 500):
            parts = np.array_split(np.argsort(predicted, kind="stable"), bins)
            if different < 500:
                parts = [np.flatnonzero(predicted == one) for one in range(different)]
            found = calibration(private, predicted, bins)
            order = generator.permutation(500)
            again = calibration(private.subset(order), predicted[order], bins)
            for one, other in zip(found, again, strict=True):
                assert np.allclose([*vars(one).values()], [*vars(other).values()], rtol=1e-9)
            if bins >= different or different == 500:
                assert [one.rows for one in found] == list(map(len, parts))
                means = [(predicted[rows].mean(), observed[rows].mean()) for rows in parts]
                assert np.allclose([(b.predicted, b.observed) for b in found], means, rtol=1e-9)


def test_a_search_tunes_on_private_labels():
    true, chance, _ = two_models(8000, 0)
    x = np.log(chance / (1 - chance))[:, None]
    private = drawn(BINARY, true)
    search = GridSearchCV(
        PrivateLabelClassifier(LogisticRegression(), BINARY),
        {"estimator__C": [1e-7, 1.0]},
        cv=3,
        scoring=scorer("log loss", BINARY),
    ).fit(x, private)
    assert search.best_params_ == {"estimator__C": 1.0} and search.best_score_ < 0
    for metric in ("accuracy", "AUC"):
        found = cross_val_score(
            search.best_estimator_, x, private, cv=3, scoring=scorer(metric, BINARY)
        )
        assert 0.6 < found.mean() < 0.9
    artifact = open_artifact(NUMBERS)
    places = np.random.default_rng(0).integers(0, 12, 4000)
    model = PrivateLabelRegressor(Ridge(), artifact)
    found = scorer("squared error", artifact)(
        model.fit(places[:, None], drawn(artifact, places)),
        places[:, None],
        drawn(artifact, places),
    )
    assert found < 20


def test_a_scorer_finds_the_groups_in_the_features():
    """All scores of a search were NaN."""
    artifact = open_artifact(GROUPS)
    columns, labels = frame(artifact, 3000), np.arange(3000) % artifact.label.size
    private = drawn(artifact, labels, tables=tables_of(artifact.groups, columns, 3000))
    model = PrivateLabelRegressor(DummyRegressor(), artifact)
    scores = cross_val_score(
        model, columns, private, cv=3, scoring=scorer("squared error", artifact)
    )
    assert np.isfinite(scores).all()
    given = {"columns": columns, "X": np.zeros((3000, 1)), "y": private}
    model.fit(**given)
    assert scorer("squared error", artifact)(model, **given) == pytest.approx(scores.mean(), abs=3)


@pytest.mark.parametrize(
    ("artifact", "predicted", "metrics", "words"),
    [
        (BINARY, [0.5], None, "1 predictions of 'm' for 2 labels"),
        (BINARY, [0.5, 0.5], ["nothing"], "there is no metric"),
        (BINARY, [0.5, 0.5], ["squared error"], "is of numbers"),
        (BINARY, [0, 1], ["AUC"], "needs probabilities"),
        (BINARY, [0.5, 87.0], None, "between 0 and 1"),
        (BINARY, [0.5, math.nan], ["accuracy"], "none may be missing"),
        (NUMBERS, [["a"], ["b"]], None, "one column of numbers"),
    ],
)
def test_what_does_not_fit_is_refused(artifact, predicted, metrics, words):
    opened = artifact if not hasattr(artifact, "exists") else open_artifact(artifact)
    column = list(opened.tables[0].values)[:2]
    with pytest.raises(PrivateLabelError, match=words):
        evaluate(PrivateLabels(opened, column), {"m": predicted}, metrics)


def test_what_an_artifact_hides_is_not_estimated():
    artifact = open_artifact(FILES / "plain/rr-on-bins-squared.onnx")
    private = PrivateLabels(artifact, drawn(artifact, np.arange(100) % 12))
    with pytest.raises(PrivateLabelError, match="cannot be estimated"):
        evaluate(private, {"m": np.zeros(100)}, ["squared error"])


@pytest.mark.parametrize("start", [0.0, 1e6, 1e9])
def test_how_far_numbers_are_from_zero_does_not_matter(start):
    """Labels with the same outputs passed for different ones, and squares lost all digits."""
    domain, metrics = RealDomain(start, start + 3, 4), ["squared error", "absolute error"]
    values = [start, start + 1, start + 2, start + 3]
    bins = with_table(open_artifact(NUMBERS), domain, [[3, 1]] * 2 + [[1, 3]] * 2, values[1:3])
    for metric in [*metrics, "Poisson loss"]:
        with pytest.raises(PrivateLabelError, match="cannot be estimated"):
            evaluate(PrivateLabels(bins, values[1:3]), {"m": values[1:3]}, [metric])
    apart = np.eye(4, dtype=int) * 4 + 1
    known = with_table(open_artifact(NUMBERS), domain, apart, values)
    for metric in metrics:
        found = losses(metric, PrivateLabels(known, values), np.full(4, start))
        wanted = true_loss(metric, np.arange(4.0), 0.0)
        assert np.allclose(apart / 8 @ found, wanted, atol=1e-6)
