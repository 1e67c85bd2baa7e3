"""Alias tables give every item exactly its weight."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.decode.alias import column_sums, items_of
from labeldp_verify.graph.alias_table import alias_entries, column_bits, sample

from verifier.tests.integers import composition


def counted(entries, word_bits):
    """The words of each item, column by column in Python integers and without shortcuts."""
    columns, total = len(entries), Counter()
    height = 2**word_bits // columns
    for j, entry in enumerate(entries):
        # w = h·columns + j ≤ entry for the heights h ≤ (entry − j)/columns
        own = min(max((entry - j) // columns + 1, 0), height)
        total[j] += own
        total[entry % columns] += height - own
    return total


def assert_exact(weights, word_bits):
    entries = alias_entries(weights, word_bits)
    assert len(entries) == 2 ** column_bits(len(weights))
    assert all(0 <= entry < 2**word_bits for entry in entries)
    assert +counted(entries, word_bits) == Counter(dict(enumerate(weights)))
    array = np.array([entries], dtype=np.uint64)
    assert column_sums(array, word_bits)[0][: len(weights)] == list(weights)
    assert entries == alias_entries(tuple(weights), word_bits)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 64), st.integers(1, 40))
def test_random_weights(seed, word_bits, items):
    items = min(items, 2 ** (word_bits - 1), 2**word_bits)
    assert_exact(composition(random.Random(seed), 2**word_bits, items), word_bits)


@pytest.mark.parametrize(
    ("weights", "word_bits"),
    [
        ([2**64], 64),
        ([2], 1),
        ([1, 1], 1),
        ([2**64 - 1, 1], 64),
        ([1, 2**64 - 1], 64),
        ([2**63, 2**63], 64),
        ([2**62] * 4, 64),
        ([1] * 8, 3),
        ([2**61] * 3 + [5 * 2**61], 64),
        ([1] * 255 + [2**64 - 255], 64),
        ([2**64 - 256] + [1] * 256, 64),
        ([1] * 2 + [2**64 - 4] + [1] * 2, 64),
        ([2**i for i in range(64)] + [1], 64),
        ([1] + [2**i for i in range(63, -1, -1)], 64),
        ([2**31 - 1, 2**31 + 1, 2**64 - 2**32], 64),
    ],
)
def test_extreme_weights(weights, word_bits):
    assert sum(weights) == 2**word_bits
    assert_exact(weights, word_bits)


@pytest.mark.parametrize("word_bits", [4, 8, 11])
def test_word_by_word(word_bits):
    generator = random.Random(word_bits)
    for items in (1, 2, 3, 5, 8, 15, 16):
        weights = composition(generator, 2**word_bits, items)
        entries = alias_entries(weights, word_bits)
        drawn = [sample(entries, word) for word in range(2**word_bits)]
        assert Counter(drawn) == Counter(dict(enumerate(weights)))
        words = np.arange(2**word_bits, dtype=np.uint64)
        table = np.array([entries], dtype=np.uint64)
        assert items_of(table, np.zeros(len(words), np.int64), words).tolist() == drawn


def test_every_item_keeps_the_lowest_word_of_its_own_column():
    generator = random.Random(3)
    for _ in range(50):
        weights = composition(generator, 2**20, generator.randint(1, 70))
        entries = alias_entries(weights, 20)
        assert [sample(entries, j) for j in range(len(weights))] == list(range(len(weights)))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5), st.integers(0, 60), st.data())
def test_tables_that_nobody_dealt_are_counted_exactly(c, more, data):
    # Whatever words stand in the table: also entries that no distribution leads to.
    word_bits = min(c + more, 64)
    word = st.integers(0, 2**64 - 1) | st.integers(0, 2**c - 1)
    entries = data.draw(st.lists(word, min_size=2**c, max_size=2**c))
    got = column_sums(np.array([entries], dtype=np.uint64), word_bits)[0]
    assert sum(got) == 2**word_bits
    assert +Counter(dict(enumerate(got))) == +counted(entries, word_bits)


def test_one_item_may_have_all_the_words_of_a_table_with_several_columns():
    entries = np.full((1, 8), 5, dtype=np.uint64)
    entries[0, :5] = 5  # columns 0 … 4 hold one own word each, as 0 … 4 are below 5
    assert column_sums(entries, 64)[0] == [1, 1, 1, 1, 1, 2**64 - 5, 0, 0]
    alone = np.array([[0, 0]], dtype=np.uint64)
    assert column_sums(alone, 64)[0] == [2**64, 0]


@pytest.mark.parametrize(
    ("weights", "word_bits"),
    [
        ([0, 4], 2),
        ([5, -1], 2),
        ([1, 2], 2),
        ([3, 3], 2),
        ([1] * 8, 2),
        ([1], 64),
        ([2**64, 1], 64),
    ],
)
def test_other_weights_are_refused(weights, word_bits):
    with pytest.raises(ValueError, match=r"weights|items"):
        alias_entries(weights, word_bits)
