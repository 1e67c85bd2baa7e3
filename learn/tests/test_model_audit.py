"""Guesses about the labels of a model: what they prove, and what they do not accuse."""

import numpy as np
import pytest
from labeldp_learn.epsilon_bound import Guesses, epsilon_bound, p_value
from labeldp_learn.model_audit import AuditRows, audit_model
from scipy.stats import binom
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor


def rows_of(x, y, model, places, classes=2):
    found = model.predict_proba(x[places]) if classes else model.predict(x[places])[:, None]
    return AuditRows(y[places].astype(float), found.astype(float), x[places])


def audited(seed, *, spent=None, numbers=False, epsilon=1.0, noise=0.5, rows=1500):
    """An audit of the nearest neighbour, whose labels were randomized with ε ``spent``."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(2 * rows, 3))
    score = 2 * x[:, 0] + x[:, 1] + noise * random.logistic(size=len(x))
    y = np.round(5 * score) if numbers else (score > 0).astype(int)
    labels = y[:rows].copy()
    if spent is not None:
        turned = random.random(rows) > 1 / (1 + np.exp(-spent))
        labels[turned] = 1 - labels[turned]
    kind = KNeighborsRegressor if numbers else KNeighborsClassifier
    model, classes = kind(1).fit(x[:rows], labels), None if numbers else 2
    parts = (rows_of(x, y, model, at, classes) for at in (slice(rows), slice(rows, None)))
    return audit_model(*parts, classes, epsilon=epsilon, random=random)


@pytest.mark.parametrize("alone", [0.5, 0.6])
def test_a_bound_is_the_epsilon_under_which_so_many_right_guesses_are_just_likely(alone):
    guesses = Guesses(200, 170)
    bound = epsilon_bound(guesses, 0.025, 0.0, alone, 200)
    odds = np.exp(bound) * alone / (1 - alone)
    assert binom.sf(169, 200, odds / (1 + odds)) == pytest.approx(0.025, rel=1e-5)
    assert epsilon_bound(Guesses(200, 100), 0.025, 0.0, alone, 200) == 0
    assert epsilon_bound(Guesses(0, 0), 0.025, 0.0, alone, 200) == 0


def test_delta_adds_what_the_theorem_says():
    """Of Steinke, Nasr and Jagielski, Theorem 5.2: β + α·2mδ."""
    chance, made, right, rows, delta = 1 / (1 + np.exp(-1)), 30, 28, 50, 1e-3
    more = [
        (binom.sf(right - i - 1, made, chance) - binom.sf(right - 1, made, chance)) / i
        for i in range(1, right + 1)
    ]
    expected = binom.sf(right - 1, made, chance) + 2 * rows * delta * max(more)
    assert p_value(Guesses(made, right), 1.0, delta, 0.5, rows) == pytest.approx(expected)


def test_a_model_that_repeats_true_labels_is_accused():
    for seed in range(3):
        found = audited(seed)
        assert found.poor is None and found.refuted and found.bound > 2
    found = audited(3, numbers=True, noise=3.0)
    assert found.poor is None and found.refuted and found.bound > 1


def test_a_model_that_keeps_its_epsilon_is_not():
    found = [audited(seed, spent=1.0) for seed in range(20)]
    bounds = [one.bound for one in found if one.poor is None]
    assert len(bounds) >= 15 and not any(one.refuted for one in found)
    assert sum(bound > 1 for bound in bounds) <= 3  # 5% of them are expected at most
    assert np.median(bounds) > 0.2


def test_a_model_that_claims_too_little_is_accused_with_more_rows():
    assert audited(0, spent=4.0, rows=4000).refuted
    assert not audited(0, spent=4.0, rows=4000, epsilon=4.0).refuted


def test_a_stand_in_that_knows_less_than_the_model_bounds_nothing():
    """A model that is always right and never sure, and too few rows to learn that."""
    random = np.random.default_rng(0)
    y = random.integers(20, size=700)
    sure = np.where(y[:, None] == np.arange(20), 0.2, 0.8 / 19)
    nothing = np.zeros((700, 0))
    parts = (AuditRows(y[at] * 1.0, sure[at], nothing[at]) for at in (slice(400), slice(400, None)))
    found = audit_model(*parts, 20, random=random)
    assert found.bound is None and not found.refuted and "not trained on" in found.poor


def test_steps_count_every_guess():
    found = audited(5)
    assert sum(step.others.made for step in found.steps) >= found.others.made
    assert sum(step.trained.made for step in found.steps) >= found.trained.made


def test_few_rows_are_refused():
    few = AuditRows(np.zeros(100), np.zeros((100, 1)), np.zeros((100, 0)))
    with pytest.raises(ValueError, match="at least 200 rows"):
        audit_model(few, few, None)
