"""Keyed words: the construction of docs/keyed-words.md, rebuilt here from hmac and AES."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_runtime import Key
from labeldp_runtime.columns import read_ids
from labeldp_runtime.keyed import KeyedWords

from runtime.tests.helpers import plain_words

SECRET = bytes(range(32))
DIGEST = "0123456789abcdef" * 4


def keyed(count=1, context="visits", digest=DIGEST, secret=SECRET):
    return KeyedWords(Key(secret), context, digest, count)


def words(ids, labels, version=0, **options):
    bits = np.array(labels, dtype=np.uint64)
    return keyed(**options)(read_ids(ids), bits, version)


ids_of_one_kind = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=70), min_size=1, max_size=20),
    st.lists(st.binary(max_size=70), min_size=1, max_size=20),
)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    ids=ids_of_one_kind,
    count=st.sampled_from([1, 2, 3, 4]),
    version=st.integers(0, 2**64 - 1),
    context=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    seed=st.integers(0, 2**32),
)
def test_every_row_is_what_the_specification_says(ids, count, version, context, seed):
    labels = np.random.default_rng(seed).integers(0, 2**64, len(ids), np.uint64)
    got = words(ids, labels, version, count=count, context=context)
    assert got.shape == ((len(ids),) if count == 1 else (len(ids), count))
    assert got.dtype == np.uint64 and got.flags.c_contiguous
    expected = [
        plain_words(SECRET, context, DIGEST, version, value, int(label), count)
        for value, label in zip(ids, labels, strict=True)
    ]
    assert got.reshape(len(ids), -1).tolist() == expected


GOLDEN = [  # id, version, canonical label, three words: also in docs/keyed-words.md
    (5, 0, 7, "3dc741b057c5b243 c866e5cfe2701757 52180632c423db21"),
    (-5, 0, 7, "283caf94c7544eb9 dd067f91b5a0bcdc 4423adf1a9e197f3"),
    (2**63, 0, 7, "6f24e8bfe510f976 c9c1afb6d19797bd 3f1f591d07a9a8af"),
    ("5", 0, 7, "ea425abb2296d570 f15f7bb5ff11613a da789cfebaf7a236"),
    ("", 0, 7, "733f1db3e62b797e 41b74b8671140eb7 2bb78d06da239f75"),
    ("Zoë-2024-000017", 1, 7, "5d5ddea51b771e28 cb946de876b01864 8f20733be0a36739"),
    (bytes(range(16)), 0, 7, "3c4f6bb733050cd6 b5886a21072393d7 7c6f4ca7b5c0add1"),
    (bytes(24), 2**64 - 1, 2**64 - 1, "4e33dfe2e915a2d7 e2f2fb62b1ffa9fd a93ea73d57b7dce3"),
]


GOLDEN_BY_GROUP = [  # the same, and the index of the group
    (5, 0, 7, 0, "12cd6d63e17ed6fc e09872b46f84d873 b3f6b84fb4eda4f7"),
    (5, 0, 7, 1, "ad19984c2f17cdc4 ddcbdc6461ba219b 63ef968c0d167de5"),
    (2**63, 0, 7, 44, "b765bc154e1051b8 cb420018622c3146 f65c9e6beba1bb29"),
    ("Zoë-2024-000017", 1, 7, 44, "f93042f206e2c1d3 4eae03b681a8c9ce c5e50572deeb7e22"),
]


@pytest.mark.parametrize(("value", "version", "label", "group", "expected"), GOLDEN_BY_GROUP)
def test_golden_words_by_group(value, version, label, group, expected):
    derive = KeyedWords(Key(SECRET), "visits", DIGEST, 3)
    got = derive(
        read_ids([value]), np.array([label], np.uint64), version, np.array([group], np.uint64)
    )
    assert [f"{word:016x}" for word in got[0].tolist()] == expected.split()


@pytest.mark.parametrize(("value", "version", "label", "expected"), GOLDEN)
def test_golden_words(value, version, label, expected):
    got = words([value], [label], version, count=3)[0].tolist()
    assert got == plain_words(SECRET, "visits", DIGEST, version, value, label, 3)
    assert [f"{word:016x}" for word in got] == expected.split()
