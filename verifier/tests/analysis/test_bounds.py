"""The rational bounds of e^x and ln x, held against plain series and against ``decimal``."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms.exact_numbers import (
    exp_bounds,
    exp_lower,
    exp_upper,
    least_log_bound,
    log_bounds,
)

EPSILONS = st.fractions(0, 60, max_denominator=10**9)


def series(x: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Taylor bounds of e^x, x ≥ 0: the partial sum, and that plus a geometric tail."""
    total = term = Fraction(1)
    for n in range(1, terms):
        term = term * x / n
        total += term
    return total, total + term * x / terms / (1 - x / (terms + 1))


def enclosure(function: Callable[[Decimal], Decimal], x: Fraction) -> tuple[Fraction, Fraction]:
    """What ``decimal`` says with 250 digits, widened by far more than it rounds."""
    with localcontext(Context(prec=250)):
        found = Fraction(function(Decimal(x.numerator) / Decimal(x.denominator)))
    wide = (abs(found) + 1) / 10**200
    return found - wide, found + wide


@settings(deadline=None, derandomize=True, max_examples=60)
@given(EPSILONS)
def test_enclosures_hold_and_are_tight(x):
    lower, upper = exp_bounds(x)
    assert (lower, upper) == (exp_lower(x), exp_upper(x))
    for low, high in (series(x, 400), enclosure(Decimal.exp, x)):
        assert lower <= high and low <= upper
    assert lower <= upper
    assert (upper - lower) / lower < Fraction(1, 10**80)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.fractions(1, 10**12, max_denominator=10**18))
def test_the_stated_log_bound_is_the_least(ratio):
    stated = least_log_bound(ratio)
    unit = Fraction(1, 10**12)
    assert stated % unit == 0
    assert exp_bounds(stated)[1] >= ratio
    assert enclosure(Decimal.exp, stated)[1] >= ratio
    if stated:
        assert exp_lower(stated - unit) < ratio
        assert enclosure(Decimal.exp, stated - unit)[0] < ratio


def test_logarithms_from_two_libraries_agree():
    for value in (Fraction(1, 3), Fraction(2), Fraction(10**30, 7), Fraction(1)):
        low, high = enclosure(Decimal.ln, value)
        other_low, other_high = log_bounds(value)
        assert low <= other_high and other_low <= high
        assert float(low) == pytest.approx(float(other_high))
