"""Private labels of many ids have the certified distribution, under one fixed key."""

from collections import Counter
from pathlib import Path

import pytest
from labeldp_verify.analysis.probabilities import equally_likely, row
from labeldp_verify.opening import open_artifact
from scipy.stats import chi2

from tests.sql.files import FIVE
from tests.sql.hosts import HERE, Rows

CHANCE = 1e-6  # of a false alarm, if the ids were chosen at random
COUNT = 6000


@pytest.mark.parametrize("name", ["window", "table", "sets"])
def test_private_labels_have_the_certified_distribution(name):
    artifact = open_artifact(Path(FIVE[name]))
    table = artifact.tables[0]
    listed = list(artifact.label.listed)
    for place in (0, len(listed) - 1):
        rows = Rows(FIVE[name], [[listed[place]] * COUNT], [f"id {i}" for i in range(COUNT)])
        seen = Counter(HERE["duckdb"](rows)[0])
        weights = dict(zip(table.values, row(table, place), strict=True))
        assert set(seen) <= set(weights)
        expected = {one: COUNT * w / equally_likely(table) for one, w in weights.items()}
        frequent = [one for one, mean in expected.items() if mean >= 5]
        rest = sum(mean for mean in expected.values() if mean < 5)
        pairs = [(seen[one], expected[one]) for one in frequent]
        if rest >= 5:
            pairs.append((COUNT - sum(count for count, _ in pairs), rest))
        statistic = sum((count - mean) ** 2 / mean for count, mean in pairs)
        assert len(pairs) > 1 and statistic < chi2.isf(CHANCE, len(pairs) - 1)
