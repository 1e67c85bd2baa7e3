"""Printed bounds stay bounds: they are rounded to the side that does not flatter."""

import math
import random
from fractions import Fraction

import pytest
from labeldp_verify.printable import (
    at_least,
    at_most,
    down_to,
    percent_at_most,
    probability,
    up_to,
)


def numbers(count=500):
    draws = random.Random(5)
    for _ in range(count):
        size = Fraction(10) ** draws.randint(-9, 9)
        yield Fraction(draws.randint(1, 10**12), draws.randint(1, 10**12)) * size


@pytest.mark.parametrize("digits", [2, 3, 6, 12])
def test_bounds_hold_and_are_near(digits):
    for number in numbers():
        above, below = Fraction(at_most(number, digits)), Fraction(at_least(number, digits))
        assert below <= number <= above
        assert above - below <= number * Fraction(10) ** (1 - digits)


def test_six_decimals_up_and_four_down():
    for number in numbers():
        if number < 100:
            assert 0 <= Fraction(up_to(number)) - number < Fraction(1, 10**6)
            assert 0 <= number - Fraction(down_to(number)) < Fraction(1, 10**4)


def test_a_decimal_stays_itself_though_its_float_is_above_or_below():
    for number in (0.07, 0.1, 0.8, 0.9949, 1.1, 1.169, 2.427, 19.99):
        assert at_most(number) == at_least(number) == f"{number:g}"
        assert up_to(number) == f"{number:.6f}"
    assert at_most(1) == "1"
    assert at_most(0.0) == "0"
    assert at_most(math.inf) == "inf"


def test_a_belief_is_never_less_than_bayes_allows():
    for share in (1e-5, 0.02672, 0.2319, 0.7311, 0.9, 0.991, 0.99999, 1.0):
        for digits in (2, 3):
            shown = Fraction(percent_at_most(share, digits).removesuffix("%"))
            assert Fraction(repr(share)) * 100 <= shown <= 100
    assert percent_at_most(math.e / (1 + math.e)) == "74%"
    assert percent_at_most(0.9998618) == "99.99%"
    assert percent_at_most(1 - 2e-12) == "99.9999999999%"


@pytest.mark.parametrize("kind", ["g", "f", "%"])
def test_a_probability_is_0_or_1_only_where_it_is_exactly_that(kind):
    scale = 100 if kind == "%" else 1
    for share in (1e-30, 1e-9, 0.0003, 0.5, 0.9994, 0.9998618, 1 - 1e-12, math.nextafter(1, 0)):
        for digits in (1, 3, 6):
            shown = float(probability(share, digits, kind).removesuffix("%"))
            assert 0 < shown < scale
            assert share < 1e-16 or abs(shown / scale - share) <= 10.0**-digits
    assert float(probability(1, 3, kind).removesuffix("%")) == scale
    assert float(probability(0, 3, kind).removesuffix("%")) == 0
    assert probability(0.9998618) == "0.9999"
    assert probability(0.0421, 1, "%") == "4.2%"
