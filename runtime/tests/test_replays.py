"""Randomizing with a key: replays give the same private label, and misuse is refused."""

import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import (
    DuplicateIdError,
    IdError,
    Key,
    LabelError,
    Randomizer,
)
from labeldp_runtime.ids import CheckedIds, IntegerIds
from labeldp_runtime.randomizer import CHUNK

from runtime.tests.helpers import counts, file, path_of, plain_words, values

KEY = Key(bytes(range(32)))
ARTIFACTS = {
    "integer": file("integers"),
    "real": file("reals"),
    "text": file("text"),
}
LABELS = {
    "integer": np.arange(600) % 10,
    "real": np.arange(600) % 90 / 10,
    "text": np.array(["red", "green", "blue"] * 200, object),
}


def keyed(name="integer", key=KEY, context="y"):
    return Randomizer(ARTIFACTS[name], key=key, context=context)


@pytest.mark.parametrize("name", sorted(ARTIFACTS))
def test_the_words_are_those_of_the_specification(name):
    randomizer, labels = keyed(name), LABELS[name][:50]
    ids = [f"row {i}" for i in range(50)]
    digest = randomizer.certificate["digests"]["tables"]
    categories = randomizer.certificate["label"]["domain"].get("values")
    canonical = {
        "integer": int,
        "real": lambda label: int(np.float64(label).view(np.uint64)),
        "text": (categories or []).index,
    }[name]
    count = 2 if name == "real" else 1
    words = [
        plain_words(KEY.secret, "y", digest, 3, i, canonical(label), count)
        for i, label in zip(ids, labels, strict=True)
    ]
    words = np.array(words, dtype=np.uint64)
    expected = randomizer.apply_words(labels, words if count == 2 else words[:, 0])
    assert randomizer(labels, ids=ids, version=3).tolist() == expected.tolist()


@pytest.mark.parametrize("name", sorted(ARTIFACTS))
def test_replays_are_equal_whatever_the_order_batch_or_instance(name):
    labels, ids = LABELS[name], np.arange(600) * 7
    whole = keyed(name)(labels, ids=ids)
    assert np.array_equal(keyed(name)(labels, ids=ids), whole)
    order = np.random.default_rng(0).permutation(600)
    assert np.array_equal(keyed(name)(labels[order], ids=ids[order]), whole[order])
    randomizer = keyed(name)
    parts = [randomizer(labels[a : a + 37], ids=ids[a : a + 37]) for a in range(0, 600, 37)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert [randomizer([labels[i]], ids=[int(ids[i])])[0] for i in range(9)] == whole[:9].tolist()


def test_more_rows_than_a_chunk():
    n = 2 * CHUNK + 11
    labels, ids = np.arange(n) % 10, np.arange(n) - 5
    whole = keyed()(labels, ids=ids)
    tail = slice(CHUNK - 3, n)
    assert np.array_equal(keyed()(labels[tail], ids=ids[tail]), whole[tail])


def test_ids_that_the_caller_looks_through_give_the_same_and_are_not_refused():
    randomizer, labels = keyed(), LABELS["integer"]
    ids = np.arange(600)
    expected = randomizer(labels, ids=ids)
    assert np.array_equal(randomizer(labels, ids=CheckedIds(IntegerIds(ids))), expected)
    twice = CheckedIds(IntegerIds(np.append(ids[:-1], 0)))
    assert np.array_equal(randomizer(labels, ids=twice)[:-1], expected[:-1])
    with pytest.raises(DuplicateIdError):
        randomizer(labels, ids=twice.ids)
    with pytest.raises(IdError, match="one id per label"):
        randomizer(labels[:-1], ids=twice)


def test_another_key_context_version_or_artifact_gives_other_noise():
    labels, ids = np.zeros(400, dtype=int), np.arange(400)
    results = [
        keyed()(labels, ids=ids),
        keyed()(labels, ids=ids, version=1),
        keyed(context="z")(labels, ids=ids),
        keyed(key=Key(bytes(32)))(labels, ids=ids),
        keyed()(labels, ids=ids + 400),
        keyed()(labels, ids=[str(i) for i in ids]),
        Randomizer(file("integers, wider"), key=KEY, context="y")(labels, ids=ids),
    ]
    lowest = [result == result.min() for result in results]
    for i, first in enumerate(lowest):
        for second in lowest[:i]:
            # Independent draws of two outputs differ on at least a tenth of 400 rows.
            assert (first != second).sum() > 40


def test_labels_that_the_artifact_cannot_tell_apart_have_the_same_noise():
    ids = np.arange(300)
    pairs = {
        "integer": [(9, 1e9), (0, None), (0, float("nan")), (3, 3.2), (0, -(10**30))],
        "real": [(9.0, 1e300), (0.0, -0.0), (0.0, None), (0.0, float("-inf"))],
        "text": [("green", "mauve"), ("green", None), ("green", "")],
    }
    for name, cases in pairs.items():
        randomizer = keyed(name)
        for one, other in cases:
            row = [[value] + ["red"] * (name == "text") for value in (one, other)]
            first, second = (
                [randomizer(values, ids=np.arange(len(values)) + i)[0] for i in ids]
                for values in row
            )
            assert first == second


@pytest.mark.parametrize("label", [0, 5, 9])
def test_frequencies_over_ids_match_the_certified_counts(label):
    small, n = "integers, 12 bits", 100_000
    randomizer = Randomizer(file(small), key=KEY, context="y")
    expected = counts(small, label)
    for ids in (np.arange(n), [f"{i}" for i in range(n)]):
        seen = Counter(randomizer(np.full(n, label), ids=ids).tolist())
        chi_square = sum(
            (seen[v] - n * c / 4096) ** 2 / (n * c / 4096) for v, c in expected.items()
        )
        assert set(seen) <= set(expected) and chi_square < 40


def test_every_kind_of_column_gives_the_same_labels():
    labels, names = list(range(10)), [f"ä{i}" for i in range(10)]
    expected = keyed()(labels, ids=names).tolist()
    columns = [
        (pa.array(labels), pa.array(names).dictionary_encode()),
        (pa.chunked_array([labels[:3], labels[3:]]), pa.chunked_array([names[:6], names[6:]])),
        (pd.Series(labels, dtype="Int8"), pd.Series(names)),
        (pd.Series(labels), pl.Series(names)),
        (pl.Series(labels), pl.Series(names, dtype=pl.Categorical)),
        (labels, np.array(names)),
    ]
    for column, ids in columns:
        assert values(keyed()(column, ids=ids)) == expected


def test_misuse_is_refused(tmp_path):
    model = ARTIFACTS["integer"]
    fresh = Randomizer(model)
    for options in ({"ids": [1, 2]}, {"version": 1}, {"ids": [1, 2], "version": 1}):
        with pytest.raises(IdError, match="need a key"):
            fresh([1, 2], **options)
    randomizer = keyed()
    with pytest.raises(IdError, match="give ids"):
        randomizer([1, 2])
    with pytest.raises(IdError, match="one id per label"):
        randomizer([1, 2], ids=[1])
    with pytest.raises(IdError, match="null"):
        randomizer([1, 2], ids=["a", None])
    with pytest.raises(DuplicateIdError, match="rows 0 and 2"):
        randomizer([1, 2, 3], ids=["a", "b", "a"])
    with pytest.raises(LabelError, match="expected"):
        randomizer(np.array([["a"]]), ids=[1])
    assert randomizer([1], ids=[1], version=np.int8(3)) == randomizer([1], ids=[1], version=3)
    for version in (-1, 1.0, "1", True, 2**64, None):
        with pytest.raises(IdError, match="version"):
            randomizer([1], ids=[1], version=version)
    with pytest.raises(IdError, match="different indexes"):
        randomizer(pd.Series([1, 2]), ids=pd.Series([1, 2], index=[1, 0]))
    for options in ({"key": KEY}, {"context": "y"}):
        with pytest.raises(ValueError, match="belong together"):
            Randomizer(model, **options)
    for context in ("", b"y", 3, "\ud800"):
        with pytest.raises(ValueError, match="context"):
            Randomizer(model, key=KEY, context=context)


def test_threads_share_a_keyed_randomizer():
    labels, ids = np.arange(CHUNK + 9) % 10, np.arange(CHUNK + 9)
    randomizer, results = keyed(), []
    expected = randomizer(labels, ids=ids)
    threads = [
        threading.Thread(target=lambda: results.append(randomizer(labels, ids=ids)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6 and all(np.array_equal(r, expected) for r in results)


WITHOUT_CRYPTOGRAPHY = """
import sys
sys.modules["cryptography"] = None  # as where it is not installed
from labeldp_runtime import Key, MissingExtraError, Randomizer
assert len(Randomizer.load(sys.argv[1])([1, 2])) == 2
try:
    Randomizer.load(sys.argv[1], key=Key(bytes(32)), context="y")
except MissingExtraError as error:
    print(error)
"""


def test_without_cryptography_the_core_works_and_keys_say_what_is_missing():
    command = [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY, str(path_of("integers"))]
    assert "pip install cryptography" in subprocess.check_output(command, text=True)


def test_the_extra_is_imported_only_for_a_key():
    code = "import labeldp_runtime, sys; assert 'cryptography' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
