"""Where columns of numbers are cut."""

import numpy as np
import pytest
from labeldp_trainer.interactions.columns import learn_columns


def edges(numbers):
    numeric = np.asarray(numbers, np.float32)[:, None]
    features = {"numeric": numeric, "categorical": np.zeros((len(numeric), 0), np.int32)}
    (column,) = learn_columns(features, ())
    rows = np.bincount(column.codes(numeric[:, 0]), minlength=len(column.edges) + 2)
    assert np.isnan(numeric).all() or (rows[:-1] > 0).all()
    return column.edges


def test_of_a_number_that_nearly_all_rows_have_the_others_are_told_apart():
    amounts = np.random.default_rng(0).lognormal(size=400)
    found = edges(np.r_[np.zeros(9600), amounts])
    assert found[0] == np.float32(amounts.min()) and len(found) == 23
    within = np.searchsorted(found, np.sort(amounts).astype(np.float32), side="right")
    assert np.bincount(within).max() <= 400 / 23 + 2


def test_numbers_without_a_usual_one_are_cut_at_quantiles():
    numbers = np.random.default_rng(0).normal(size=5000)
    counts = np.histogram(numbers, np.r_[-9, edges(numbers), 9])[0]
    assert len(counts) == 24 and np.ptp(counts) <= 3


@pytest.mark.parametrize("count", [1, 2, 24])
def test_few_numbers_have_a_bin_each(count):
    assert np.array_equal(edges(np.arange(count).repeat(3)), np.arange(1, count))
