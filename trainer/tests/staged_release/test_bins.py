"""Bins of histograms of numbers."""

import numpy as np
import pytest
from labeldp_trainer.staged_release.plan import MOST_BINS, HistogramBins

from trainer.tests.staged_release.staged_helpers import own_noise, table


@pytest.mark.parametrize("ends", [(0, 770), (-3, 1e6), (-9.5, -1), (250, 350), (0, 1e-9)])
def test_bins_are_disjoint_and_cover_the_range(ends):
    bins = HistogramBins.of(ends)
    assert (np.diff(bins.labels) > 0).all() and (np.diff(bins.sizes) > 0).all()
    assert (bins.labels[0], bins.labels[-1]) == ends
    assert (bins.sizes[0], bins.sizes[-1]) == (0, ends[1] - ends[0])
    assert max(len(bins.labels), len(bins.sizes)) <= MOST_BINS


def guess(labels, ends, seed):
    """What is known after the histogram of labels, and the labels on the scale that it gives."""
    own = table(0, len(labels), epsilon=1.0)
    facts = own.release.facts.model_copy(update={"label_range": ends})
    release = type(own.release)(facts, own.release.columns)
    draws = own.draws(labels, release, add_noise=own_noise(np.random.default_rng(seed)))
    found = draws.labels()
    return found, draws._scale.of(labels)


@pytest.mark.parametrize("wider", [1, 10, 100])
def test_a_range_that_is_too_wide_still_says_where_labels_lie(wider):
    counts = np.random.default_rng(0).negative_binomial(1, 0.25, 8000).clip(0, 60) * 1.0
    for seed in range(5):
        found, scaled = guess(counts, (0.0, 60.0 * wider), seed)
        assert 0.5 < found.variance / scaled.var() < 2
        assert 0.4 < 2 * found.clip / np.ptp(np.quantile(scaled, [0.005, 0.995])) < 3
