"""The interval of a mean where a rare output decides: its normal approximation missed 14 in 100."""

import numpy as np
import pytest
from labeldp_learn.estimators import OutputCounts, mean_estimator
from labeldp_learn.inversion import LabelClasses, invert
from scipy.stats import binom

from tests.usefulness.test_margins import rare_file

ROWS, WORDS = 1_000, 1 << 16


@pytest.mark.parametrize("rare", [3, 10, 30, 60, 100, 200, 500])
def test_the_interval_of_a_mean_covers_where_a_large_output_is_rare(rare):
    """Exactly, for 1,000 labels 0: by how often the large output comes."""
    decoded = rare_file(rare)
    classes = LabelClasses.of(decoded)
    mean = mean_estimator(decoded, classes, invert(decoded, classes))
    covered = 0.0
    for count in range(40):
        counts = np.array([ROWS - count, count])
        group = OutputCounts(np.array([0, 1]), counts)
        share = min(max((count / ROWS * WORDS / rare) - 1, 0.0), 1.0)  # of label 1, projected
        found = mean(group, "rows", np.array([1 - share, share]))
        if found.low[0] <= 0 <= found.high[0]:
            covered += binom.pmf(count, ROWS, rare / WORDS)
    assert covered >= 0.925
