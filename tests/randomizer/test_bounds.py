"""The rational bounds of e^ε: two independent implementations, and a third by plain series."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeldp_compile.randomizer import exp_bound
from labeldp_compile.verify import bounds

EPSILONS = st.fractions(0, 60, max_denominator=10**9)


def series(x: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Taylor bounds of e^x, x ≥ 0: the partial sum, and that plus a geometric tail."""
    total = term = Fraction(1)
    for n in range(1, terms):
        term = term * x / n
        total += term
    return total, total + term * x / terms / (1 - x / (terms + 1))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(EPSILONS)
def test_enclosures_hold_and_are_tight(x):
    low, high = series(x, 400)
    for lower, upper in (
        (exp_bound.exp_lower(x), exp_bound.exp_upper(x)),
        bounds.exp_bounds(x),
    ):
        assert lower <= high and low <= upper
        assert lower <= upper
        assert (upper - lower) / lower < Fraction(1, 10**80)


def test_zero_is_one_inside_the_bounds():
    assert exp_bound.exp_lower(Fraction(0)) <= 1 <= exp_bound.exp_upper(Fraction(0))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.fractions(1, 10**12, max_denominator=10**18))
def test_the_stated_log_bound_is_the_least(ratio):
    stated = Fraction(exp_bound.log_bound(ratio))
    assert stated == bounds.least_log_bound(ratio)
    assert bounds.exp_bounds(stated)[1] >= ratio
    unit = Fraction(1, 10**12)
    if stated:
        assert exp_bound.exp_lower(stated - unit) < ratio


def test_logarithms_from_two_libraries_agree():
    for value in (Fraction(1, 3), Fraction(2), Fraction(10**30, 7), Fraction(1)):
        low, high = exp_bound.log_interval(value)
        other_low, other_high = bounds.log_bounds(value)
        assert low <= other_high and other_low <= high
        assert float(low) == pytest.approx(float(other_high))
