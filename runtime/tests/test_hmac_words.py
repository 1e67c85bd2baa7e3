"""Words by HMAC-SHA-256: the construction of docs/keyed-words.md, rebuilt here from hmac."""

import hmac
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_runtime import Key, Randomizer
from labeldp_runtime.columns import read_ids
from labeldp_runtime.keyed import HmacWords

from runtime.tests.helpers import path_of
from runtime.tests.test_keyed_words import DIGEST, SECRET, ids_of_one_kind


def plain_message(context, version, counter, label, group, value):
    kind, name = {
        int: ("i", str(value).encode()),
        str: ("t", str(value).encode()),
        bytes: ("b", value),
    }[type(value)]
    label = label - 2**64 if label >= 2**63 else label
    head = f"labeldp-hmac-words-1:{len(context.encode())}:{context}:{DIGEST}:{version}:{counter}:"
    return f"{head}{label}:{'' if group is None else group}:{kind}:".encode() + name


def words(ids, labels, version=0, groups=None, count=1, context="visits"):
    derive = HmacWords(Key(SECRET), context, DIGEST, count)
    bits = np.array(labels, dtype=np.uint64)
    tables = None if groups is None else np.array(groups, dtype=np.uint64)
    return derive(read_ids(ids), bits, version, tables)


@settings(max_examples=30)
@given(
    ids=ids_of_one_kind,
    count=st.sampled_from([1, 2, 3, 4, 5, 9]),
    version=st.integers(0, 2**64 - 1),
    context=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    seed=st.integers(0, 2**32),
    grouped=st.booleans(),
)
def test_every_row_is_what_the_specification_says(ids, count, version, context, seed, grouped):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2**64, len(ids), np.uint64)
    groups = generator.integers(0, 100_000, len(ids), np.uint64) if grouped else None
    got = words(ids, labels, version, groups, count, context)
    assert got.shape == ((len(ids),) if count == 1 else (len(ids), count))
    assert got.dtype == np.uint64 and got.flags.c_contiguous
    for i, value in enumerate(ids):
        group = None if groups is None else int(groups[i])
        blocks = [
            hmac.digest(
                SECRET, plain_message(context, version, j, int(labels[i]), group, value), "sha256"
            )
            for j in range(-(-count // 4))
        ]
        expected = np.frombuffer(b"".join(blocks), dtype=">u8")[:count]
        assert got.reshape(len(ids), -1)[i].tolist() == expected.tolist()


GOLDEN = [  # id, version, canonical label, group, three words: also in docs/keyed-words.md
    (5, 0, 7, None, "673b76a78158f8b9 e57c805f12192595 acd2332d505a0b93"),
    (-5, 0, 7, None, "0f4214d4f372a97e 42d46e6bf00c536f 3a980bceef8b4a59"),
    (2**63, 0, 7, None, "614d21c3fb4b86b9 3d42e750c64db738 95f50eef9396feb8"),
    ("5", 0, 7, None, "eca918c18441ccbe 567cbf7f28d122db 705de0c3fb2e1efc"),
    ("", 0, 7, None, "940e371f5ec64968 f747f35515f234e6 f8ace51c35f5e81c"),
    ("Zoë-2024-000017", 1, 7, None, "aede4031964d2d69 51166030b655a21b 99b98a3d30e6ba65"),
    (bytes(range(16)), 0, 7, None, "5375ec96407fe1d4 d11398d0d255194c d51776739b2ccb0c"),
    (bytes(24), 2**64 - 1, 2**64 - 1, None, "98052d1c69e066fa e0e5a0d46c6afa8c 80a156fc30720cd0"),
    (5, 0, 7, 0, "792f818d54e6d25c 4c4d0940f0a53604 bbd96bc4389cc92c"),
    (5, 0, 7, 1, "d5f488f635ad6a86 8dd2c2a9772d56fe b62345c8d0ef5a4e"),
    ("Zoë-2024-000017", 1, 7, 44, "a5dce95b503229d0 cbd9e7f1169cce0a de142f77f060194f"),
]


@pytest.mark.parametrize(("value", "version", "label", "group", "expected"), GOLDEN)
def test_golden_words(value, version, label, group, expected):
    (found,) = words([value], [label], version, None if group is None else [group], 3)
    assert " ".join(f"{word:016x}" for word in found) == expected


def test_a_randomizer_draws_by_the_construction_that_it_was_given(tmp_path):
    path, key = path_of("integers"), Key.create(tmp_path / "labels.key")
    options = {"key": key, "context": "visits"}
    by_hmac = Randomizer.load(path, **options, construction="hmac-sha256")
    by_aes = Randomizer.load(path, **options)
    labels, ids = [3] * 200, list(range(200))
    first = by_hmac(labels, ids=ids)
    assert (first == by_hmac(labels, ids=ids)).all()
    assert (first[::-1] == by_hmac(labels, ids=ids[::-1])).all()
    assert (first != by_aes(labels, ids=ids)).any()
    assert (by_aes(labels, ids=ids) == Randomizer.load(
        path, **options, construction="aes-256")(labels, ids=ids)).all()  # fmt: skip
    assert (first == pickle.loads(pickle.dumps(by_hmac))(labels, ids=ids)).all()
    digest = by_hmac.certificate["digests"]["tables"]
    canonical = np.full(200, 3, dtype=np.uint64)
    drawn = HmacWords(key, "visits", digest, 1)(read_ids(ids), canonical, 0)
    assert (first == by_hmac.apply_words(labels, drawn)).all()


def test_an_unknown_construction_is_refused():
    with pytest.raises(ValueError, match="construction must be one of aes-256, hmac-sha256"):
        Randomizer.load(path_of("integers"), key=Key(SECRET), context="x", construction="hmac-sha1")
