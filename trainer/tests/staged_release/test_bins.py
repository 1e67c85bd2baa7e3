"""Bins of histograms of numbers, and releases of the version that had other ones."""

from pathlib import Path

import numpy as np
import pytest
from labeldp_trainer.interactions.ask import BROAD, MAINLY_MAINS
from labeldp_trainer.staged_release.bins import MOST_BINS, HistogramBins
from labeldp_trainer.staged_release.check import checks, replayed
from labeldp_trainer.staged_release.plan import guess as guess_of
from labeldp_trainer.staged_release.plan import most_sums
from labeldp_trainer.staged_release.release import read_staged

from trainer.tests.staged_release.staged_helpers import own_noise, table

HERE = Path(__file__).parent
"""Has a release with own_noise of seed 0, drawn by each format."""
TABLES = {
    "1.0": {"seed": 5, "count": 60},
    "1.1": {"seed": 5, "count": 60},
    "1.2": {"seed": 6, "count": 80, "classes": ("a", "b", "c"), "order": 2},
    "1.3": {"seed": 7, "count": 120, "classes": ("a", "b"), "order": 2, "usual": 0.9},
    "1.4": {"seed": 8, "count": 150, "usual": 0.5},
    "1.5": {"seed": 9, "count": 150, "usual": 0.5},
}


@pytest.mark.parametrize("ends", [(0, 770), (-3, 1e6), (-9.5, -1), (250, 350), (0, 1e-9)])
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"])
def test_bins_are_disjoint_and_cover_the_range(version, ends):
    bins = HistogramBins.of(version, ends)
    assert (np.diff(bins.labels) > 0).all() and (np.diff(bins.sizes) > 0).all()
    assert (bins.labels[0], bins.labels[-1]) == ends
    assert (bins.sizes[0], bins.sizes[-1]) == (0, ends[1] - ends[0])
    assert max(len(bins.labels), len(bins.sizes)) <= MOST_BINS


def test_fewer_sums_are_asked_of_many_rows():
    assert {most_sums(v, n) for v in ("1.0", "1.1") for n in (10, 10**6)} == {600}
    assert most_sums("1.2", 50_000) == 600 > most_sums("1.2", 100_000)
    assert table(5, 60).draws(None).most_sums == 600


def test_few_interactions_are_expected_of_classes():
    assert {guess_of(v, classes=c) for v in ("1.0", "1.2") for c in (True, False)} == {BROAD}
    assert guess_of("1.3", classes=False) == BROAD
    assert table(5, 60, classes=("a", "b")).draws(None).guess == MAINLY_MAINS


def guess(labels, ends, seed):
    """What is known after the histograms of labels, and of their distances from a constant."""
    own = table(0, len(labels), epsilon=1.0)
    facts = own.release.facts.model_copy(update={"label_range": ends})
    release = type(own.release)(facts, own.release.columns)
    draws = own.draws(labels, release, add_noise=own_noise(np.random.default_rng(seed)))
    return draws.labels()


@pytest.mark.parametrize("wider", [1, 10, 100])
def test_a_range_that_is_too_wide_still_says_where_labels_lie(wider):
    counts = np.random.default_rng(0).negative_binomial(1, 0.25, 8000).clip(0, 60) * 1.0
    for seed in range(5):
        found = guess(counts, (0.0, 60.0 * wider), seed)
        assert 0.5 < found.variance / counts.var() < 2
        assert 0.4 < 2 * found.clip / np.quantile(counts, 0.995) < 3


@pytest.mark.parametrize("version", TABLES)
def test_a_release_of_an_earlier_format_is_verified_and_replayed(version):
    own = table(**TABLES[version], epsilon=4.0, version=version)
    release = read_staged(HERE / f"format-{version}.npz")
    assert release.facts.format_version == version
    found = [*checks(release, own.method, own.public, own.classes, "y")]
    found += replayed(release, own.public, own.learn)
    assert len(found) > 10
    assert all(check.ok for check in found), [c.words for c in found if not c.ok]
    x = own.public.features["numeric"][:, 0]
    noise = own_noise(np.random.default_rng(0))
    before = type(release)(release.facts.model_copy(update={"parts": ()}), release.columns)
    y = np.clip(x, -1.0, 2.0)
    if own.classes is not None:
        y = np.digitize(x, [-0.5, 0.5][: len(own.classes) - 1])
    draws = own.draws(y, before, add_noise=noise)
    own.learn(draws)
    for part, drawn in zip(release.parts, draws.release.parts, strict=True):
        assert part.facts.kind == drawn.facts.kind and len(part.answer) == len(drawn.answer)
