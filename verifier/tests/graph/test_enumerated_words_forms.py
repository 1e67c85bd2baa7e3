"""The running graph gives exactly the integers' counts: every word at a small B, every label.

Tables and additive noise; for noise, every pair of words.
"""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_form, read_model
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.forms.randomizers import check_table

from verifier.tests.files import all_words, file_of, run
from verifier.tests.integers import (
    composition,
    near_constant,
    plain_distribution,
    random_additive,
    random_table,
)

TABLE_DOMAINS = {
    "integer": (IntegerDomain(-2, 2), [-2, -1, 0, 1, 2], (-1.5, 0.0, 0.1, 4.0)),
    "one output": (IntegerDomain(0, 1), [0, 1], (2.0,)),
    "eight outputs": (IntegerDomain(0, 1), [0, 1], tuple(float(i) for i in range(8))),
    "real": (RealDomain(0.0, 1.0, 3, default=0.5), [0.0, 0.5, 1.0, float("nan")], (0.0, 0.5, 1.0)),
    "text": (
        CategoricalDomain(("a", "β", "c d"), "β"),
        ["a", "β", "c d", "unknown"],
        ("c d", "a", "β", "", "other"),
    ),
    "integer categories": (
        CategoricalDomain((7, -1, 2**40), 7),
        [7, -1, 2**40, 8],
        (2**40, 7, -1, 5),
    ),
}
TABLE_ROWS = {"real": [0, 1, 2, 1], "text": [0, 1, 2, 1], "integer categories": [0, 1, 2, 0]}


def array_of(label, count):
    return np.full(count, label, dtype=object if isinstance(label, str) else type(label))


@pytest.mark.parametrize("row", [composition, near_constant])
@pytest.mark.parametrize("word_bits", [5, 10, 13])
@pytest.mark.parametrize("kind", sorted(TABLE_DOMAINS))
def test_tables(kind, word_bits, row):
    domain, labels, values = TABLE_DOMAINS[kind]
    randomizer = random_table(random.Random(word_bits), domain.size, values, word_bits, row)
    check_table(randomizer)
    model = file_of(domain, randomizer, Fraction(40), "zero_one")
    report = check_bytes(model)
    assert report.ok, report.checks[-1]
    form = read_form("table", read_model(model), model, domain)
    words = all_words(word_bits)
    for label, index in zip(labels, TABLE_ROWS.get(kind, range(9)), strict=False):
        got = run(model, array_of(label, len(words)), words)
        assert Counter(got) == dict(zip(values, randomizer.counts[index], strict=True))
        rows = np.full(len(words), index, dtype=np.int64)
        assert got == form.outputs_of(rows, words[:, None]).tolist()


ADDITIVE_DOMAINS = {
    "integer": (lambda k: IntegerDomain(-2, k - 3), 1.0),
    "real nearest": (lambda k: RealDomain(0.1, 0.1 + 0.7 * (k - 1), k), 0.7),
    "real unbiased": (lambda k: RealDomain(-1.0, k / 2 - 1.5, k, "unbiased"), 0.5),
}


@pytest.mark.parametrize(
    ("labels", "spacing", "reach", "word_bits"),
    [(3, 1, 1, 6), (3, 2, 2, 6), (4, 1, 3, 6), (5, 3, 1, 6), (2, 1, 2, 5), (2, 3, 3, 5)],
)
@pytest.mark.parametrize("kind", sorted(ADDITIVE_DOMAINS))
def test_additive_noise(kind, labels, spacing, reach, word_bits):
    make, step = ADDITIVE_DOMAINS[kind]
    domain = make(labels)
    for seed, row in enumerate((composition, near_constant, composition)):
        generator = random.Random(seed)
        unit, origin = step / spacing, float(domain.min)
        randomizer = random_additive(
            generator, labels, spacing, reach, word_bits, origin, unit, row
        )
        model = file_of(domain, randomizer, Fraction(40), "absolute")
        report = check_bytes(model)
        assert report.ok, report.checks[-1]
        form = read_form("additive", read_model(model), model, domain)
        words = np.array(np.meshgrid(all_words(word_bits), all_words(word_bits, 1)))
        words = words.reshape(2, -1).T
        for index, label in enumerate(domain.labels()):
            numbers = array_of(int(label) if kind == "integer" else float(label), len(words))
            entropy = words
            rows = np.full(len(words), index, dtype=np.int64)
            if kind == "real unbiased":  # a third word, which rounds no label of the grid
                third = np.random.default_rng(2).integers(0, 2**64, len(words), np.uint64)
                entropy = np.column_stack([words, third])
            got = run(model, numbers, entropy)
            assert got == form.outputs_of(rows, words).tolist()
            expected = Counter()
            for point, p in plain_distribution(randomizer, index).items():
                expected[randomizer.value(point)] += p * randomizer.words**2
            assert Counter(got) == expected


def test_a_label_between_two_points_is_rounded_by_the_third_word():
    domain = RealDomain(0.0, 2.0, 3, "unbiased")
    randomizer = random_additive(random.Random(1), 3, 2, 2, 5, 0.0, 0.5)
    model = file_of(domain, randomizer, Fraction(40))
    pairs = np.array(np.meshgrid(all_words(5), all_words(5))).reshape(2, -1).T
    below, above = (Counter(run(model, np.full(1024, y), with_third(pairs, 0))) for y in (0.0, 1.0))
    for third, expected in ((0, above), (2**62 - 1, above), (2**62, below), (2**64 - 1, below)):
        got = run(model, np.full(1024, 0.25), with_third(pairs, third))
        assert Counter(got) == expected


def with_third(pairs, third):
    return np.column_stack([pairs, np.full(len(pairs), third, dtype=np.uint64)])
