"""At the shipped word size, the words on both sides of every boundary give the certified output."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify.forms import IntegerDomain
from labeldp_verify.graph.self_test import self_test_vectors

from labeldp_compile.rounding.windows import randomized_response
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import run, session_of


def plain_output(randomizer, row, u):
    boundaries = randomizer.boundaries()
    t = u + (randomizer.offsets[row] if u >= randomizer.base_total else 0)
    return randomizer.values[randomizer.segment_outputs()[bisect_right(boundaries, t) - 1]]


@pytest.mark.parametrize("mechanism", ["rr_on_bins", "randomized_response"])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1.0", "4.0", "9.0", "20.0"])
def test_both_sides_of_every_boundary(epsilon, mechanism):
    text = INTEGER_SPEC.replace("1.0", epsilon).replace("rr_on_bins", mechanism)
    artifact = compile_text(text)
    r = artifact.randomizer
    assert r.word_bits > 30
    labels, us = [], []
    for row in range(10):
        cuts = set(r.boundaries()[: len(r.base) + 1]) | {r.words}
        cuts |= {c - r.offsets[row] for c in r.boundaries()[len(r.base) :]}
        for u in sorted({c + d for c in cuts for d in (-1, 0)}):
            if 0 <= u < r.words:
                labels.append(row)
                us.append(u)
    words = np.array([u << (64 - r.word_bits) for u in us], dtype=np.uint64)
    got = run(artifact.model, np.array(labels), words)
    assert got == [plain_output(r, row, u) for row, u in zip(labels, us, strict=True)]


def test_self_test_vectors_straddle_bit_31_and_leave_the_domain():
    domain = IntegerDomain(0, 9)
    randomizer = randomized_response([float(i) for i in range(10)], range(10), Fraction(1))
    vectors = self_test_vectors(domain, randomizer)
    lows = {int(row[0], 16) >> (64 - randomizer.word_bits) & 0xFFFFFFFF for row in vectors["words"]}
    assert {0x7FFFFFFF, 0x80000000} <= lows
    labels = {int(label) for label in vectors["labels"]}
    assert {-1, 10, 2**63 - 1, -(2**63)} <= labels
    assert len(set(vectors["outputs"])) == 10


def test_wrong_numbers_of_words_are_errors_not_shared_noise():
    session = session_of(compile_text(INTEGER_SPEC).model)
    for words in (0, 1, 2, 4):
        with pytest.raises(Exception, match=r".*"):
            session.run(
                None,
                {"label": np.zeros(3, np.int64), "entropy": np.zeros(words, np.uint64)},
            )
    empty = session.run(None, {"label": np.zeros(0, np.int64), "entropy": np.zeros(0, np.uint64)})
    assert empty[0].shape == (0,)
    with pytest.raises(Exception, match=r".*"):
        session.run(None, {"label": np.zeros(0, np.int64), "entropy": np.zeros(1, np.uint64)})
