"""Table randomizers: what the verifier reads from a file, derives from it, and refuses."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import analyse
from labeldp_verify.decode import read_form, read_model
from labeldp_verify.decode.file import MAX_PAIRS
from labeldp_verify.forms import IntegerDomain
from labeldp_verify.graph import write_model

from verifier.tests.analysed import losses_by_label
from verifier.tests.integers import (
    composition,
    near_constant,
    plain_distribution,
    plain_mean,
    plain_ratio,
    random_table,
)

LOSSES = {
    "squared": lambda v, y: (Fraction(v) - y) ** 2 / 2,
    "absolute": lambda v, y: abs(Fraction(v) - y),
    "zero_one": lambda v, y: Fraction(v != y),
}


def decoded(domain, randomizer):
    data = write_model(domain, randomizer, {})
    return read_form("table", read_model(data), data, domain)


def random_values(generator, count):
    pool = [-3.5, -1.0, 0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 1e-300, 7.25, 1e17, 2.0**-40]
    return tuple(sorted(generator.sample(pool, count)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 12), st.integers(5, 64))
def test_everything_derived_is_what_the_definition_says(seed, labels, outputs, word_bits):
    generator = random.Random(seed)
    domain = IntegerDomain(-1, labels - 2)
    row = generator.choice([composition, near_constant])
    values = random_values(generator, outputs)
    randomizer = random_table(generator, labels, values, word_bits, row)
    form = decoded(domain, randomizer)
    assert form.randomizer == randomizer
    assert analyse(form.randomizer).why_not_distributions() is None
    assert analyse(form.randomizer).output_rounding() == 0
    assert analyse(form.randomizer).worst_ratio() == plain_ratio(randomizer, labels)
    rows = [plain_distribution(randomizer, y) for y in range(labels)]
    labels_ = domain.labels()
    expected = [plain_mean(p, Fraction) - y for p, y in zip(rows, labels_, strict=True)]
    assert analyse(form.randomizer).biases(labels_) == expected
    weights = [generator.randrange(3) for _ in range(labels)]
    for loss, of in LOSSES.items():
        got = losses_by_label(form.randomizer, labels_, weights, loss)
        for (low, high), p, y, weight in zip(got, rows, labels_, weights, strict=True):
            assert low == high == (plain_mean(p, lambda v: of(v, y)) if weight else 0)  # noqa: B023


def test_poisson_loss_is_enclosed():
    domain, generator = IntegerDomain(0, 4), random.Random(1)
    randomizer = random_table(generator, 5, (0.1, 1.0, 2.5, 3.0), 40)
    bounds = losses_by_label(
        decoded(domain, randomizer).randomizer, domain.labels(), [1] * 5, "poisson"
    )
    for y, (low, high) in enumerate(bounds):
        p = plain_distribution(randomizer, y)
        expected = math.fsum(float(q) * (v - y * math.log(v)) for v, q in p.items())
        assert 0 <= high - low < Fraction(1, 2**200)
        assert float(low) == pytest.approx(expected, rel=1e-12)
    zero = decoded(domain, random_table(generator, 5, (0.0, 1.0), 40))
    with pytest.raises(ValueError, match="infinite"):
        losses_by_label(zero.randomizer, domain.labels(), [1] * 5, "poisson")
    losses_by_label(
        zero.randomizer, domain.labels(), [1, 0, 0, 0, 0], "poisson"
    )  # only label 0 occurs


@pytest.mark.parametrize("labels", [2, 30, 500])
def test_critical_words_lie_on_both_sides_of_the_thresholds(labels):
    generator = random.Random(3)
    domain = IntegerDomain(0, labels - 1)
    values = tuple(float(i) for i in range(100))
    form = decoded(domain, random_table(generator, labels, values, 64))
    rows, words = form.critical_words()
    assert len(rows) == len(words) <= MAX_PAIRS
    assert set(rows.tolist()) == set(range(labels))
    assert set(form.outputs_of(rows, words).tolist()) == set(values)
    pairs = set(zip(rows.tolist(), words[:, 0].tolist(), strict=True))
    if labels == 30:  # all columns are visited
        for j, entry in enumerate(form.entries[7].tolist()):
            own = min((entry >> 7) + (j < entry % 128), 2**57)
            if entry % 128 != j and own:
                assert (7, (own - 1) << 7 | j) in pairs
                assert (7, own << 7 | j) in pairs
    # Around bit 31 of the entry that the word is compared with.
    entry = form.entries[rows, (words[:, 0] & np.uint64(127)).astype(np.int64)]
    bit = np.uint64(1 << 31)
    same_high = (entry >> np.uint64(32)) == (words[:, 0] >> np.uint64(32))
    straddling = same_high & ((entry & bit) != (words[:, 0] & bit))
    assert np.count_nonzero(straddling) > 100
