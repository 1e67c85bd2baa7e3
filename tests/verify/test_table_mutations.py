"""Tables: whatever is changed in a file, the verifier says no."""

import random
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.artifact.alias_table import alias_entries
from labeldp_verify.decode.file import DecodeError, read_certificate, read_domain, read_model
from labeldp_verify.decode.table import TableFile
from labeldp_verify.forms import IntegerDomain

from tests.form_helpers import (
    certified,
    failed_step,
    moved,
    plain_ratio,
    random_table,
    replaced,
    swapped,
    with_constant,
)

EPSILON = Fraction(3)

DOMAIN = IntegerDomain(0, 4)
VALUES = (0.0, 1.0, 2.5, 3.0, 4.0)


@pytest.fixture(scope="module")
def honest():
    return random_table(random.Random(4), 5, VALUES, 24)


@pytest.fixture(scope="module")
def model(honest):
    return certified(DOMAIN, honest, EPSILON)


def test_the_honest_file_verifies(model, honest):
    report = check_bytes(model)
    assert report.ok, report.checks[-1]
    proto = read_model(model)
    certificate = read_certificate(proto).to_json()
    domain = read_domain(certificate["label"]["domain"])
    assert TableFile.read(proto, domain).rebuild(domain, certificate) == model
    assert str(plain_ratio(honest, 5)) == certificate["exact"]["realised_ratio"]


@pytest.mark.parametrize("loss", ["squared", "absolute", "zero_one", "poisson"])
def test_every_loss_verifies(loss):
    randomizer = random_table(random.Random(5), 5, (0.5, 1.0, 2.0, 3.0), 64)
    report = check_bytes(certified(DOMAIN, randomizer, EPSILON, loss))
    assert report.ok, report.checks[-1]


def test_changed_entries_and_swapped_thresholds_fail(model):
    names = set()
    for i in range(39):
        mutant = with_constant(model, "table_entries", swapped(i))
        if mutant != model:  # two equal entries
            names.add(failed_step(mutant))
        for by in (1, 2, 8, 2**64 - 8, 2**63):
            names.add(failed_step(with_constant(model, "table_entries", moved(i, by))))
    assert None not in names
    assert names <= {"tables", "rows", "privacy", "utility", "claims", "whole file"}


def test_another_layout_of_the_same_weights_is_not_canonical(model, honest):
    def change(entries):
        entries[0:8] = alias_of(honest.counts[0], (4, 3, 2, 1, 0))
        return entries

    assert failed_step(with_constant(model, "table_entries", change)) == "whole file"


def alias_of(weights, order):
    """The weights dealt in another order: entries that give the same distribution."""
    renamed = alias_entries([weights[i] for i in order], 24)
    entries = [0] * 8
    place = [*order, 5, 6, 7]
    for new, entry in enumerate(renamed):
        j, a = place[new], place[entry % 8]
        own = 2**21 if entry % 8 == new else (entry >> 3) + (new < entry % 8)
        entries[j] = j if a == j else ((own - (j < a)) << 3) | a
    return np.array(entries, dtype=np.uint64)


def moved_words(honest, count):
    counts = [list(row) for row in honest.counts]
    counts[0][0] += count
    counts[0][1] -= count
    return replaced(honest, counts=tuple(map(tuple, counts)))


def test_one_word_too_many_is_not_private(honest):
    # ε is declared as the least that the honest counts have, to twelve digits.
    tight = replaced(honest, counts=tuple((2**23, *[2**21] * 4) for _ in range(5)))
    counts = [list(row) for row in tight.counts]
    counts[1][0], counts[1][1] = 2**23 - 2**20, 2**21 + 2**20
    like = replaced(tight, counts=tuple(map(tuple, counts)))
    epsilon = Fraction(405465108109, 10**12)  # ln 1.5 = 0.405465108108164…
    assert check_bytes(certified(DOMAIN, like, epsilon)).ok
    counts[1][1] += 1
    counts[1][2] -= 1
    forged = replaced(like, counts=tuple(map(tuple, counts)))
    assert failed_step(certified(DOMAIN, forged, epsilon, like=like)) == "privacy"


@pytest.mark.parametrize("count", [1, -1, 1000])
def test_canonical_files_of_other_counts_fail(honest, count):
    assert failed_step(certified(DOMAIN, moved_words(honest, count), EPSILON, like=honest)) in {
        "privacy",
        "utility",
    }


@pytest.mark.parametrize(
    "values", [(0.0, 1.0, 2.5, 4.0, 3.0), (0.0, 1.0, 2.5, 3.0, 5.0), (-0.0, 1.0, 2.5, 3.0, 4.0)]
)
def test_other_outputs_fail(honest, values):
    forged = replaced(honest, values=values)
    assert failed_step(certified(DOMAIN, forged, EPSILON, like=honest)) in {"tables", "utility"}


def test_single_byte_flips_fail(model):
    generator = random.Random(6)
    places = {*range(64), *range(len(model) - 64, len(model))}
    places.update(generator.randrange(len(model)) for _ in range(250))
    for place in places:
        mutant = bytearray(model)
        mutant[place] ^= generator.randrange(1, 256)
        assert failed_step(bytes(mutant)), place


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("table_entries", lambda a: a[:-1]),
        ("table_entries", lambda a: np.append(a, a)),
        ("table_entries", np.zeros_like),
        ("table_entries", lambda a: np.full_like(a, 2**64 - 1)),
        ("table_entries", lambda a: np.full_like(a, 6)),
        ("table_word_shift", lambda _: 0),
        ("table_word_shift", lambda _: 62),  # two bits for eight columns
        ("table_word_shift", lambda _: 64),
        ("table_word_shift", lambda _: 2**64 - 1),
        ("values", lambda a: np.append(a, [5.0] * 4)),
        ("values", lambda a: a[:1]),
        ("values", lambda a: np.append(a[:-1], np.inf)),
    ],
)
def test_constants_of_the_wrong_size_or_range_do_not_decode(model, name, change):
    with pytest.raises(DecodeError):
        TableFile.read(read_model(with_constant(model, name, change)), DOMAIN)


def test_hostile_numbers_of_labels_do_not_decode(model):
    for size in (10**6, 10**15, 2**53):
        with pytest.raises(DecodeError):
            TableFile.read(read_model(model), IntegerDomain(0, size))
