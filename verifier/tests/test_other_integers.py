"""Canonical files of other integers, and constants that are none: the verifier says no."""

from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.additive import worst_ratio
from labeldp_verify.decode import read_form, read_model
from labeldp_verify.errors import CheckFailedError
from labeldp_verify.forms import IntegerDomain

from verifier.tests.artifacts import NOISE, TABLE, artifact
from verifier.tests.files import (
    certificate_of,
    failed_step,
    file_of,
    with_constant,
)
from verifier.tests.integers import plain_ratio, replaced, response

DOMAIN = IntegerDomain(0, 4)
EPSILONS = {"table": Fraction(3), "additive": Fraction(13, 10)}
HONEST = {"table": TABLE, "additive": NOISE}


def read(form, data, domain):
    return read_form(form, read_model(data), data, domain)


def forged(form, randomizer):
    """The canonical file of other integers, with the certificate of the honest ones."""
    return file_of(DOMAIN, randomizer, EPSILONS[form], like=HONEST[form])


@pytest.mark.parametrize("form", HONEST)
def test_the_stated_ratio_is_that_of_the_definition(form):
    assert certificate_of(artifact(form))["exact"]["realised_ratio"] == str(
        plain_ratio(HONEST[form], 5)
    )


def test_an_enlarged_window_is_not_private():
    # Base weight moved to another output: rows still sum to one, ε no longer holds.
    honest = response([float(i) for i in range(5)], range(5), 1, 16)
    base = (honest.base[0] - 40, honest.base[1] + 40, *honest.base[2:])
    wide = file_of(DOMAIN, replaced(honest, base=base), 1, like=honest)
    report = check_bytes(wide)
    assert report.checks[-1].name == "privacy"
    assert "more than e^1" in report.checks[-1].detail


def test_one_unit_of_weight_between_blocks_is_not_private():
    honest = NOISE
    blocks = list(honest.blocks)
    ratio = worst_ratio(honest)
    # From one block to the next: one unit less in the outer one.
    i = honest.reach + 1 + 2
    blocks[i + 1] -= 1
    blocks[-1] += 1
    other = replaced(honest, blocks=tuple(blocks))
    assert worst_ratio(other) > ratio
    epsilon = tight_epsilon(ratio)
    assert check_bytes(file_of(DOMAIN, honest, epsilon)).ok
    assert failed_step(file_of(DOMAIN, other, epsilon, like=honest)) == "privacy"


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


def test_a_fold_that_is_too_small_is_not_private():
    # The weight beyond the clamp falls to one word: the output ``high`` gives the label away.
    blocks = list(NOISE.blocks)
    blocks[-2] += blocks[-1] - 1
    blocks[-1] = 1
    other = replaced(NOISE, blocks=tuple(blocks))
    ratio = worst_ratio(other)
    assert ratio == plain_ratio(other, 5) > 1000
    assert failed_step(forged("additive", other)) == "privacy"


def test_one_word_too_many_is_not_private():
    # ε is declared as the least that the honest counts have, to twelve digits.
    tight = replaced(TABLE, counts=tuple((2**23, *[2**21] * 4) for _ in range(5)))
    counts = [list(row) for row in tight.counts]
    counts[1][0], counts[1][1] = 2**23 - 2**20, 2**21 + 2**20
    like = replaced(tight, counts=tuple(map(tuple, counts)))
    epsilon = Fraction(405465108109, 10**12)  # ln 1.5 = 0.405465108108164…
    assert check_bytes(file_of(DOMAIN, like, epsilon)).ok
    counts[1][1] += 1
    counts[1][2] -= 1
    other = replaced(like, counts=tuple(map(tuple, counts)))
    assert failed_step(file_of(DOMAIN, other, epsilon, like=like)) == "privacy"


def moved_words(count):
    """Words of the first label, from its second output to its first."""

    def change(r):
        first = (r.counts[0][0] + count, r.counts[0][1] - count, *r.counts[0][2:])
        return {"counts": (first, *r.counts[1:])}

    return change


@pytest.mark.parametrize(
    ("form", "changes", "steps"),
    [
        ("additive", lambda r: {"low": r.low - 1}, {"tables"}),
        ("additive", lambda r: {"low": -(2**62)}, {"tables"}),
        ("additive", lambda r: {"low": r.high, "high": r.low}, {"tables"}),
        ("additive", lambda r: {"low": r.low + 3}, {"utility"}),
        ("additive", lambda r: {"unit": 0.25}, {"utility"}),
        ("additive", lambda r: {"unit": float("nan")}, {"tables"}),
        ("additive", lambda r: {"unit": 1.7e308}, {"tables"}),
        ("additive", lambda r: {"origin": 1.0}, {"tables"}),
        ("additive", lambda r: {"origin": -0.0}, {"tables"}),
        ("additive", lambda r: {"shapes": r.shapes[::-1]}, {"privacy"}),
        ("additive", lambda r: {"blocks": (*r.blocks[1:], r.blocks[0])}, {"privacy"}),
        ("additive", lambda r: {"spacing": 1, "labels": 9}, {"tables"}),
        *(("table", moved_words(count), {"privacy", "utility"}) for count in (1, -1, 1000)),
        *(
            ("table", lambda r, values=values: {"values": values}, {"tables", "utility"})
            for values in (
                (0.0, 1.0, 2.5, 4.0, 3.0),
                (0.0, 1.0, 2.5, 3.0, 5.0),
                (-0.0, 1.0, 2.5, 3.0, 4.0),
            )
        ),
    ],
)
def test_canonical_files_of_other_integers_fail(form, changes, steps):
    other = replaced(HONEST[form], **changes(HONEST[form]))
    assert failed_step(forged(form, other)) in steps


@pytest.mark.parametrize(
    ("form", "name", "change"),
    [
        ("additive", "shape_starts", lambda a: a[:0]),
        ("additive", "shape_starts", lambda a: np.append(a, a)),
        ("additive", "low", lambda x: x + 0.5),
        ("additive", "high", lambda _: np.nan),
        ("additive", "spacing", lambda _: 1.5),
        ("additive", "period", lambda _: 2**62),
        ("additive", "spacing", lambda _: 2**62),
        ("additive", "block_word_shift", lambda _: 2**63),
        ("additive", "block_entries", lambda a: np.append(a, a)),
        ("additive", "block_entries", lambda a: np.full_like(a, 15)),
        ("table", "table_entries", lambda a: a[:-1]),
        ("table", "table_entries", lambda a: np.append(a, a)),
        ("table", "table_entries", np.zeros_like),
        ("table", "table_entries", lambda a: np.full_like(a, 2**64 - 1)),
        ("table", "table_word_shift", lambda _: 62),  # two bits for eight columns
        ("table", "table_word_shift", lambda _: 2**64 - 1),
        ("table", "values", lambda a: np.append(a, [5.0] * 4)),
        ("table", "values", lambda a: np.append(a[:-1], np.inf)),
    ],
)
def test_constants_of_the_wrong_size_or_range_do_not_decode(form, name, change):
    with pytest.raises(CheckFailedError):
        read(form, with_constant(artifact(form), name, change), DOMAIN)


def test_hostile_numbers_of_labels_do_not_decode():
    for size in (10**6, 10**15, 2**53):
        with pytest.raises(CheckFailedError):
            read("table", artifact("table"), IntegerDomain(0, size))
