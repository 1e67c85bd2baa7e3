"""Labels of several columns: every word of every combination, in the running graph."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from labeldp_verify import check_bytes

from tests.fixtures.compiled import compile_text, joint_spec
from verifier.tests.files import all_words, session_of
from verifier.tests.integers import plain_counts

MECHANISMS = {
    "response": "{kind: randomized_response}",
    "top": "{kind: rr_top_k, k: 5}",
    "prior": "{kind: rr_with_prior}",
}
FALLING = "{kind: public, weights: [" + ", ".join(map(str, range(24, 0, -1))) + "]}"
# Raw labels of each column, and the places that they stand for.
SOLD = {"no": 0, "yes": 1, "é": 2, "e\u0301": 0, "": 0, "NO": 0}
VALUE = {-1: 0, 0: 1, 1: 2, 2: 3, -2: 0, 3: 3, -(2**63): 0, 2**63 - 1: 3}
CODE = {7: 0, -3: 1, 0: 1, 8: 1}
PRICE = {-1.0: 0, -0.1251: 0, -0.125: 1, 0.75: 1, 1.6249: 1, 1.625: 2, 2.5: 2}
OTHER_PRICES = {2.51: 1, -1.01: 1, np.nan: 1, np.inf: 1, -np.inf: 1}  # the default is 0.5


def feed(columns, words):
    """One combination for all words."""
    kinds = {str: object, int: np.int64, float: np.float64}
    labels = {
        f"label_{i}": np.full(len(words), label, dtype=kinds[type(label)])
        for i, label in enumerate(columns, start=1)
    }
    return {**labels, "entropy": words}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_word_gives_the_certified_counts(name):
    artifact = compile_text(joint_spec(MECHANISMS[name], prior=FALLING), word_bits=9)
    assert check_bytes(artifact.model).ok
    session, randomizer = session_of(artifact.model), artifact.randomizer
    words, domain = all_words(9), artifact.only.domain
    assert [output.name for output in session.get_outputs()] == [
        f"private_label_{i}" for i in (1, 2, 3)
    ]
    wanted = {row: plain_counts(randomizer, row) for row in range(24)}
    for (sold, i), (value, j), (code, k) in product(SOLD.items(), VALUE.items(), CODE.items()):
        got = session.run(None, feed((sold, value, code), words))
        combinations = zip(*(column.tolist() for column in got), strict=True)
        row = (i * 4 + j) * 2 + k
        assert Counter(combinations) == {
            domain.combination(number): count for number, count in wanted[row].items()
        }


def test_a_real_column_is_rounded_to_the_nearest_point():
    artifact = compile_text(joint_spec(epsilon=4, real=True), word_bits=12)
    assert check_bytes(artifact.model).ok
    session, words = session_of(artifact.model), all_words(12)
    for price, place in {**PRICE, **OTHER_PRICES}.items():
        got = session.run(None, feed(("yes", 1, 7, price), words))
        combinations = zip(*(column.tolist() for column in got), strict=True)
        row = ((1 * 4 + 2) * 2 + 0) * 3 + place
        domain = artifact.only.domain
        assert Counter(combinations) == {
            domain.combination(number): count
            for number, count in plain_counts(artifact.randomizer, row).items()
        }


def test_columns_of_different_length_are_an_error_and_no_row_is_shared():
    artifact = compile_text(joint_spec())
    session, words = session_of(artifact.model), np.arange(4, dtype=np.uint64)
    given = feed(("yes", 1, 7), words)
    for name in ("label_1", "label_2", "label_3", "entropy"):
        for count in (1, 3):
            with pytest.raises(Exception, match=r"shape|Shape|dimension|size"):
                session.run(None, {**given, name: given[name][:count]})


def test_sets_of_combinations_come_as_one_number():
    artifact = compile_text(joint_spec("{kind: subset_selection}", 0.5, loss="zero_one"))
    report = check_bytes(artifact.model)
    assert report.ok
    session = session_of(artifact.model)
    assert [output.name for output in session.get_outputs()] == ["private_label"]
    words = np.random.default_rng(0).integers(0, 2**64, 5_000, np.uint64)
    got = session.run(None, feed(("yes", 1, 7), words))[0]
    sets = artifact.randomizer.sets
    inside = np.array([sets.blocks[o] >> 12 & 1 for o in got.tolist()])  # (1·4 + 2)·2 + 0
    kept = artifact.only.usefulness.kept.mean
    assert abs(inside.mean() - kept) < 6 * np.sqrt(kept * (1 - kept) / len(words))
