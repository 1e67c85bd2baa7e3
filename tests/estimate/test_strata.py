"""Rows of several tables together: estimates without bias, and intervals that cover."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.estimation import Estimation, GroupCounts
from labeldp_learn.estimators import OutputCounts
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.forms import GroupedWindows, Groups, IntegerDomain

from labeldp_compile.rounding.randomized_response import randomized_response
from verifier.tests.files import file_of

K, DRAWS = 4, 400
PRIORS = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.1, 0.8]])


def decoded(epsilons=(1, 2, 3)):
    windows = tuple(
        randomized_response([float(y) for y in range(K)], range(K), Fraction(e), 40)
        for e in epsilons
    )
    randomizer = GroupedWindows(Groups.of((0, 1)), windows)
    report = check_bytes(file_of(IntegerDomain(0, K - 1), randomizer, Fraction(3)))
    return report.verified()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["rows", "population"])
@pytest.mark.parametrize("rows", [1_500, 90])
def test_intervals_of_mean_and_shares_cover(target, rows):
    grouped = decoded()
    tables = [matrix(window, list(range(K))) for window in grouped.tables]
    estimation = Estimation.of(grouped, tables=[0, 1, 2])
    generator = np.random.default_rng(7)
    shares_of_groups = np.array([0.5, 0.3, 0.2])
    sizes = (rows * shares_of_groups).astype(int)
    mean_hits, share_hits, errors = 0, 0, []
    for _ in range(DRAWS):
        if target == "population":
            sizes = generator.multinomial(rows, shares_of_groups)
        true, strata = np.zeros(K), {}
        for table, size in enumerate(sizes):
            labels = generator.choice(K, size, p=PRIORS[table])
            true += np.bincount(labels, minlength=K)
            counts = np.zeros(K, np.int64)
            for y, n in enumerate(np.bincount(labels, minlength=K)):
                counts += generator.multinomial(n, tables[table][y] / tables[table][y].sum())
            seen = np.flatnonzero(counts)
            strata[table] = OutputCounts(seen, counts[seen])
        true = true / rows if target == "rows" else shares_of_groups @ PRIORS
        (found,) = estimation([GroupCounts((), strata)], target)
        truth = float(true @ np.arange(K))
        mean_hits += found.mean.low[0] <= truth <= found.mean.high[0]
        share_hits += ((found.histogram.low <= true) & (true <= found.histogram.high)).mean()
        errors.append(found.mean.value[0] - truth)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(DRAWS)
    assert 0.92 <= mean_hits / DRAWS <= 0.985
    assert 0.92 <= share_hits / DRAWS <= 0.985


def test_one_table_is_as_without_groups():
    grouped = decoded()
    counts = OutputCounts(np.arange(K), np.array([40, 30, 20, 10]))
    (together,) = Estimation.of(grouped, tables=[0])([GroupCounts((), {0: counts})], "rows")
    assert together.rows == 100
    single = replace(grouped, groups=Groups(), tables=grouped.tables[:1])
    (alone,) = Estimation.of(single)([GroupCounts((), {0: counts})], "rows")
    assert together.mean.at(0) == alone.mean.at(0)
    assert together.quantiles == alone.quantiles


def test_a_table_that_says_nothing_is_named():
    windows = list(decoded().tables)
    windows[1] = randomized_response([1.5], [0] * K, Fraction(1), 40)
    randomizer = GroupedWindows(Groups.of((0, 1)), tuple(windows))
    model = file_of(IntegerDomain(0, K - 1), randomizer, Fraction(3))
    grouped = check_bytes(model).artifact
    with pytest.raises(PrivateLabelError, match="group 1: "):
        Estimation.of(grouped, tables=[0, 1, 2])
    assert Estimation.of(grouped, tables=[0, 2]).refused == {}
