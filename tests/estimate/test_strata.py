"""Rows of several tables together: estimates without bias, and intervals that cover."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.estimation import Estimation, GroupCounts
from labeldp_learn.estimators import OutputCounts
from labeldp_verify import check_bytes
from labeldp_verify.forms import GroupedWindows, Groups, IntegerDomain

from labeldp_compile.rounding.windows import randomized_response
from verifier.tests.files import file_of

K, DRAWS = 4, 400


def decoded(epsilons=(1, 2, 3)):
    windows = tuple(
        randomized_response([float(y) for y in range(K)], range(K), Fraction(e), 40)
        for e in epsilons
    )
    randomizer = GroupedWindows(Groups.of((0, 1)), windows)
    report = check_bytes(file_of(IntegerDomain(0, K - 1), randomizer, Fraction(3)))
    return report.verified()


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
