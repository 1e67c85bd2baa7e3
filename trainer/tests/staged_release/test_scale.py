"""The scale of labels, and the way back to their mean."""

import numpy as np
import pytest
from labeldp_trainer.interactions.questions import MeanCurve
from labeldp_trainer.staged_release.plan import HistogramBins
from labeldp_trainer.staged_release.scale import LabelScale, ResidualGroups

from trainer.tests.staged_release.staged_helpers import own_noise, table


def histogram(labels, low):
    edges = HistogramBins.of((low, float(labels.max()))).labels
    counts, _ = np.histogram(labels, edges)
    return (edges[1:] + edges[:-1]) / 2, counts / counts.sum()


@pytest.mark.parametrize(
    ("labels", "powers"),
    [
        (lambda random: np.exp(random.normal(size=50_000)), {0.0}),
        (lambda random: random.normal(5, 1, size=50_000) ** 2, {0.5}),
        (lambda random: random.normal(5, 1, size=50_000), {1.0}),
        (lambda random: random.random(50_000) < 0.05, {1.0}),
        (lambda random: random.poisson(random.gamma(0.6, 4.0, 50_000)), {0.5}),
    ],
)
def test_the_least_skewed_scale_is_chosen(labels, powers):
    y = labels(np.random.default_rng(0)) * 1.0
    low = min(y.min(), 0.0)
    assert LabelScale.least_skewed(low, *histogram(y, low)).power in powers


@pytest.mark.parametrize("power", [0.0, 0.2, 0.5, 1.0])
def test_a_scale_is_increasing_and_leads_back(power):
    scale = LabelScale(-3.0, 0.5, power)
    y = np.linspace(-3.0, 40.0, 200)
    assert (np.diff(scale.of(y)) > 0).all() and np.isnan(scale.of(np.array([np.nan]))).all()
    np.testing.assert_allclose(scale.back(scale.of(y)), y, atol=1e-9)


@pytest.mark.parametrize("skewed", [False, True])
def test_the_curve_gives_mean_labels_not_labels_of_means(skewed):
    random, scale = np.random.default_rng(1), LabelScale(0.0, 0.01, 0.0)
    predicted = random.normal(1.0, 0.7, 40_000)
    residuals = random.exponential(size=40_000) - 1 if skewed else random.normal(size=40_000)
    y = np.exp(predicted + 0.5 * residuals)
    groups = ResidualGroups.of(predicted, np.ones(40_000, int), 0.25, sigma=30)
    counts = np.bincount(groups.cells_of(scale.of(y), predicted), minlength=groups.cells)
    shares = (counts + random.normal(0, 30, groups.cells)) / len(y)
    curve = groups.curve(shares, 30 / len(y), scale, (0.0, 1e3))
    for low, high in ((-0.5, 0.5), (0.5, 1.5), (1.5, 2.5)):
        own = (low < predicted) & (predicted < high)
        error = 0.06 if skewed else 0.05
        assert curve.over(predicted[own]).mean() == pytest.approx(y[own].mean(), rel=error)
        assert np.exp(predicted[own]).mean() < 0.9 * y[own].mean()


def test_groups_and_cells_are_disjoint_and_a_missing_label_is_in_none():
    predicted = np.r_[np.zeros(500), np.arange(500.0)]
    groups = ResidualGroups.of(predicted, np.ones(1000, int), 4.0, sigma=1)
    labels = predicted + np.random.default_rng(0).normal(0, 4, 1000)
    labels[3] = np.nan
    cells = groups.cells_of(labels, predicted)
    assert (cells == groups.cells).nonzero()[0].tolist() == [3] and cells.min() >= 0
    assert np.delete(cells, 3).max() < groups.cells
    assert len(np.unique(groups.edges)) == len(groups.edges)


def test_a_release_of_products_predicts_their_mean():
    own = table(3, 4000, epsilon=4.0)
    x = np.nan_to_num(own.public.features["numeric"])
    y = np.exp(0.8 * x[:, 0] + 0.5 * x[:, 1] + 0.4 * np.random.default_rng(4).normal(size=4000))
    facts = own.release.facts.model_copy(update={"label_range": (0.0, 60.0)})
    release = type(own.release)(facts, own.release.columns)
    draws = own.draws(np.minimum(y, 60.0), release, add_noise=own_noise(np.random.default_rng(0)))
    fit = own.learn(draws)
    weights, base = fit.raw()
    predicted = fit.curve.over(fit.terms.weighted(weights[:, 0]) + base[0])
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.1)
    assert np.square(predicted - y).mean() < 0.45 * y.var()


def test_predictions_that_are_all_alike_have_a_flat_curve():
    """Means of equal points differ by rounding: a slope between them would be infinite."""
    curve = MeanCurve(np.full(3, 2.0), np.array([5.0, 5.0 + 1e-15, 5.0]))
    assert (curve.slopes == 0).all() and curve.over(np.full(2, 2.0)) == pytest.approx(5.0)
