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
