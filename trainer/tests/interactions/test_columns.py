"""Where columns of numbers are cut."""

import numpy as np
import pytest
from labeldp_trainer.interactions.columns import learn_columns
from labeldp_trainer.interactions.terms import MOST_PRODUCTS, Term


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


def test_whole_numbers_of_few_values_interact_like_categories():
    random = np.random.default_rng(0)
    hours, shares = random.integers(0, 24, 2000), random.random(2000)
    numeric = np.stack([hours, hours / 2, shares], axis=1).astype(np.float32)
    features = {"numeric": numeric, "categorical": np.zeros((2000, 0), np.int32)}
    found = learn_columns(features, ())
    assert [column.in_pairs for column in found] == [23, 5, 5]
    assert [len(column.values) for column in found[:2]] == [25, 25]  # and a bin for missing ones


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("fine", [False, True])
def test_the_products_of_a_term_are_those_of_the_first_functions(size, fine):
    random = np.random.default_rng(1)
    numeric = random.normal(size=(500, size)).astype(np.float32)
    columns = learn_columns({"numeric": numeric, "categorical": np.zeros((500, 0), np.int32)}, ())
    term = Term(tuple(range(size)), fine)
    found = np.stack(term.functions(columns)) + 1
    most = columns[0].rank if fine else columns[0].in_pairs
    assert found.max() <= most and found.shape[1] <= MOST_PRODUCTS[fine]
    left_out = {tuple(p) for p in np.ndindex(*(most,) * size)} - {tuple(p) for p in (found - 1).T}
    if left_out:
        least = min(np.prod(np.array(p) + 1) for p in left_out)
        assert np.prod(found, axis=0).max() <= least
