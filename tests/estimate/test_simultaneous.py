"""Intervals that hold at once: all cover in 95% of the releases, also where counts decide."""

import numpy as np
import pytest
from labeldp_learn.estimation import SHARES, Estimation, GroupCounts
from labeldp_learn.intervals import Confidence

from tests.estimate.drawing import Drawn
from tests.estimate.test_command import artifact, labeldp, private  # noqa: F401  # a fixture


@pytest.mark.parametrize("target", ["rows", "population"])
@pytest.mark.parametrize("mechanism", ["randomized_response", "laplace"])
def test_all_intervals_of_all_groups_cover_at_once(mechanism, target):
    shares = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    drawn, together = Drawn(mechanism, 2, 5), 0
    estimation, generator = Estimation.of(drawn.artifact), np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        groups, truths = [], []
        for size in (300, 60, 12):
            labels = drawn.labels(shares, size, target, generator)
            groups.append(GroupCounts((size,), {0: drawn.outputs(labels, generator)}))
            truths.append(labels / size if target == "rows" else shares)
        together = estimation.intervals(groups)
        found = estimation(groups, target, confidence=Confidence(together))
        covered += all(map(_covers, found, truths))
    assert together == 3 * (1 + 5 + len(SHARES))
    assert covered / 200 >= 0.92


def _covers(found, truth):
    mean = truth @ np.arange(len(truth))
    true = [int(np.searchsorted(truth.cumsum(), q - 1e-9)) for q in SHARES]
    return (
        found.mean.low[0] <= mean <= found.mean.high[0]
        and (found.histogram.low <= truth + 1e-12).all()
        and (truth - 1e-12 <= found.histogram.high).all()
        and all(
            q.interval[0] <= y <= q.interval[1] for q, y in zip(found.quantiles, true, strict=True)
        )
    )
