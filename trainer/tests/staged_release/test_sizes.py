"""Where residuals are clipped: less noise and heavier tails leave more of them whole."""

import numpy as np
from labeldp_trainer.staged_release import plan
from labeldp_trainer.staged_release.draw import ResidualSizes, visible
from labeldp_trainer.staged_release.plan import HistogramBins

from trainer.tests.staged_release.staged_helpers import own_noise, table

EDGES = HistogramBins.of((-50.0, 50.0)).sizes


def sizes_of(residuals):
    counts, _ = np.histogram(np.abs(residuals), EDGES)
    return ResidualSizes(EDGES, counts / counts.sum())


def best(sizes, scale, cost=0.01):
    """The best clip where noise is in proportion to the clip, and to what clipping takes away."""
    return sizes.best_clip(lambda clip: scale * clip / sizes.slope(clip), cost)


def test_the_slope_is_that_of_clipped_residuals():
    residuals = np.random.default_rng(2).laplace(size=200_000)
    sizes = sizes_of(residuals)
    np.testing.assert_allclose(sizes.square, (residuals**2).mean(), rtol=0.02)
    for clip in (0.3, 1.0, 3.0):
        exact = (np.clip(residuals, -clip, clip) * residuals).mean() / (residuals**2).mean()
        np.testing.assert_allclose(sizes.slope(clip), exact, rtol=0.03)


def test_a_release_clips_where_the_expected_error_is_least(monkeypatch):
    """And its answers are made larger by the slope there, wherever labels lie in the range."""
    seen = []
    own = table(3, 4000, epsilon=8.0)
    x = own.public.features["numeric"][:, 0]
    y = np.clip(x / 2 + np.random.default_rng(4).choice([-0.1, 0.1, 0.8], 4000), -1.0, 2.0)
    best_clip = ResidualSizes.best_clip

    def watched(self, noise, cost):
        clip = best_clip(self, noise, cost)
        seen.append((self, clip, noise(clip)))
        return clip

    monkeypatch.setattr(ResidualSizes, "best_clip", watched)
    release = own.drawn(y, add_noise=own_noise(np.random.default_rng(0)))
    parts = [part.facts for part in release.parts if part.facts.kind == "sums"][1:]
    monkeypatch.undo()
    for (sizes, clip, noise), part in zip(seen, parts, strict=True):
        scale = noise / (clip / sizes.slope(clip))
        assert clip == best(sizes, scale, 0.012)
        assert part.clip <= clip


def test_rows_that_noise_hides_are_expected_where_they_may_be():
    """Four fifths of the rows are zeros, the others are anywhere up to 50: each bin seems empty."""
    edges, random, ratios = HistogramBins.of((0.0, 50.0)).labels, np.random.default_rng(5), []
    middle, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    shares = 0.2 * widths / widths.sum()
    shares[0] += 0.8
    for _ in range(40):
        noisy = shares + 0.03 * random.normal(size=len(shares))
        found = visible(noisy, 0.03, widths)
        assert abs(found.sum() - 1) < 1e-12
        ratios.append(float(found @ middle**2) / float(shares @ middle**2))
    assert 0.3 < np.median(ratios) < 3


def test_the_labels_of_few_skewed_rows_are_clipped_no_narrower_than_at_first(monkeypatch):
    """Noise hides large residuals; what is cut off of them would make means too small."""
    monkeypatch.setattr(plan, "_ROWS_OF_REFINED", 500)
    random = np.random.default_rng(6)
    own = table(3, 1500, epsilon=1.0, delta=1e-5)
    y = np.where(random.random(1500) < 0.8, -1.0, np.minimum(random.exponential(0.6, 1500) - 1, 2))
    for seed in range(4):
        release = own.drawn(y, add_noise=own_noise(np.random.default_rng(seed)))
        first, *others = [p.facts.clip for p in release.parts if p.facts.kind == "sums"]
        assert min(others) >= first
