"""Additive noise: whatever is changed in a file, the verifier says no."""

import random
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.additive_ratio import worst_ratio
from labeldp_verify.decode.additive import AdditiveFile
from labeldp_verify.decode.file import DecodeError, read_certificate, read_domain, read_model
from labeldp_verify.forms import (
    CategoricalDomain,
    IntegerDomain,
    RealDomain,
)

from tests.form_helpers import (
    certified,
    failed_step,
    laplace_like,
    moved,
    plain_ratio,
    replaced,
    swapped,
    with_constant,
)

DOMAIN = IntegerDomain(0, 4)
EPSILON = Fraction(13, 10)


@pytest.fixture(scope="module")
def honest():
    return laplace_like(5, 2, 4, word_bits=40, unit=0.5)


@pytest.fixture(scope="module")
def model(honest):
    return certified(DOMAIN, honest, EPSILON)


@pytest.mark.parametrize("loss", ["squared", "absolute", "zero_one"])
def test_the_honest_file_verifies(honest, loss):
    model = certified(DOMAIN, honest, EPSILON, loss)
    report = check_bytes(model)
    assert report.ok, report.checks[-1]
    proto = read_model(model)
    certificate = read_certificate(proto).to_json()
    domain = read_domain(certificate["label"]["domain"])
    assert AdditiveFile.read(proto, domain).rebuild(domain, certificate) == model
    assert str(plain_ratio(honest, 5)) == certificate["exact"]["realised_ratio"]


def test_one_unit_of_weight_between_blocks_is_not_private(honest):
    blocks = list(honest.blocks)
    ratio = worst_ratio(honest)
    # From one block to the next: one unit less in the outer one.
    i = honest.reach + 1 + 2
    blocks[i + 1] -= 1
    blocks[-1] += 1
    forged = replaced(honest, blocks=tuple(blocks))
    assert worst_ratio(forged) > ratio
    epsilon = tight_epsilon(ratio)
    assert check_bytes(certified(DOMAIN, honest, epsilon)).ok
    assert failed_step(certified(DOMAIN, forged, epsilon, like=honest)) == "privacy"


def tight_epsilon(ratio):
    """A number hardly above ln ratio, from the definition of e: 200 terms of the series."""
    low, high = Fraction(0), Fraction(40)
    for _ in range(120):
        middle = (low + high) / 2
        term = total = Fraction(1)
        for i in range(1, 200):
            term = Fraction(int(term * middle / i * 2**400), 2**400)
            total += term
        low, high = (middle, high) if total < ratio else (low, middle)
    return Fraction(int(high * 10**30) + 1, 10**30)


def test_a_fold_that_is_too_small_is_not_private(honest):
    # The weight beyond the clamp falls to one word: the output ``high`` gives the label away.
    blocks = list(honest.blocks)
    blocks[-2] += blocks[-1] - 1
    blocks[-1] = 1
    forged = replaced(honest, blocks=tuple(blocks))
    ratio = worst_ratio(forged)
    assert ratio == plain_ratio(forged, 5) > 1000
    assert failed_step(certified(DOMAIN, forged, EPSILON, like=honest)) == "privacy"


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        (lambda r: {"low": r.low - 1}, "tables"),
        (lambda r: {"high": r.high + 1}, "tables"),
        (lambda r: {"low": -(2**62)}, "tables"),
        (lambda r: {"low": r.high, "high": r.low}, "tables"),
        (lambda r: {"low": r.low + 3}, "utility"),
        (lambda r: {"high": 0}, "utility"),
        (lambda r: {"unit": 0.25}, "utility"),
        (lambda r: {"unit": -0.5}, "tables"),
        (lambda r: {"unit": 0.0}, "tables"),
        (lambda r: {"unit": float("inf")}, "tables"),
        (lambda r: {"unit": float("nan")}, "tables"),
        (lambda r: {"unit": 1.7e308}, "tables"),
        (lambda r: {"origin": 1.0}, "tables"),
        (lambda r: {"origin": -0.0}, "tables"),
        (lambda r: {"shapes": r.shapes[::-1]}, "privacy"),
        (lambda r: {"shapes": (r.shapes[0], r.shapes[0])}, "privacy"),
        (lambda r: {"blocks": (*r.blocks[1:], r.blocks[0])}, "privacy"),
        (lambda r: {"spacing": 1, "labels": 9}, "tables"),
        (lambda r: {"labels": 3, "spacing": 4}, "tables"),
        (lambda r: {"labels": 9, "spacing": 1}, "tables"),
    ],
)
def test_canonical_files_of_other_integers_fail(honest, changes, step):
    forged = replaced(honest, **changes(honest))
    assert failed_step(certified(DOMAIN, forged, EPSILON, like=honest)) == step


def test_changed_and_exchanged_entries_fail(model):
    def halves_exchanged(entries):
        return np.roll(entries, len(entries) // 2)

    mutants = [with_constant(model, "shape_entries", halves_exchanged)]
    for name, count in (("block_entries", 16), ("shape_entries", 16)):
        for i in range(count - 1):
            mutants.append(with_constant(model, name, swapped(i)))
            mutants += [
                with_constant(model, name, moved(i, by)) for by in (1, 16, 2**64 - 16, 2**63)
            ]
    names = {failed_step(mutant) for mutant in mutants if mutant != model}
    assert None not in names
    assert names <= {"tables", "rows", "privacy", "utility", "claims", "whole file"}


@pytest.mark.parametrize("name", ["noise_shift", "shape_column_shift", "shape_starts", "spacing"])
def test_constants_that_follow_from_others_cannot_differ(model, name):
    assert failed_step(with_constant(model, name, lambda value: value + 1)) in {
        "tables",
        "whole file",
    }


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
        ("shape_starts", lambda a: a[:0]),
        ("shape_starts", lambda a: a[:2]),
        ("shape_starts", lambda a: a[1:]),
        ("shape_starts", lambda a: np.append(a, a)),
        ("low", lambda x: x + 0.5),
        ("high", lambda _: np.inf),
        ("high", lambda _: np.nan),
        ("high", lambda _: 2.0**53),
        ("spacing", lambda _: 1.5),
        ("period", lambda _: 2**62),
        ("period", lambda _: 0),
        ("period", lambda _: -8),
        ("spacing", lambda _: 0),
        ("spacing", lambda _: -2),
        ("spacing", lambda _: 2**62),
        ("block_word_shift", lambda _: 25),
        ("shape_word_shift", lambda _: 23),
        ("block_word_shift", lambda _: 2**63),
        ("block_entries", lambda a: a[:8]),
        ("block_entries", lambda a: np.append(a, a)),
        ("block_entries", np.zeros_like),
        ("block_entries", lambda a: np.full_like(a, 15)),
        ("shape_entries", lambda a: a[:8]),
        ("shape_entries", np.zeros_like),
    ],
)
def test_constants_of_the_wrong_size_or_range_do_not_decode(model, name, change):
    with pytest.raises(DecodeError):
        AdditiveFile.read(read_model(with_constant(model, name, change)), DOMAIN)


@pytest.mark.parametrize(
    "domain",
    [
        CategoricalDomain((0, 1, 2, 3, 4), 0),
        IntegerDomain(0, 5),
        IntegerDomain(1, 5),
        IntegerDomain(0, 2**53),
        RealDomain(0.5, 4.5, 5),
    ],
)
def test_other_domains_do_not_decode(model, domain):
    with pytest.raises(DecodeError):
        AdditiveFile.read(read_model(model), domain)
