"""Randomizing with a key: replays give the same private label, and misuse is refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from labeldp_runtime import (
    DuplicateIdError,
    IdError,
    Key,
    LabelError,
    Randomizer,
)
from labeldp_runtime.ids import CheckedIds, IntegerIds

from runtime.tests.helpers import file, path_of

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


def test_labels_that_the_artifact_cannot_tell_apart_have_the_same_noise():
    ids = np.arange(60)
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
