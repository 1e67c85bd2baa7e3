"""Debiased randomized response (Definition 23): its outputs, and that it keeps the mean."""

from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labeldp_verify.forms import IntegerDomain, RealDomain
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.mechanism import Problem
from labeldp_compile.mechanisms.randomized_response import DebiasedRR
from verifier.tests.analysed import biases, realised_ratio

MECHANISM = DebiasedRR(kind="debiased_rr")


def solve(domain, epsilon, word_bits=None):
    problem = Problem(domain, [1] * domain.size, epsilon, "squared", word_bits)
    return MECHANISM.build(problem).randomizer


@given(
    st.integers(-50, 50),
    st.integers(1, 60),
    st.fractions(Fraction(1, 20), 10, max_denominator=20),
)
def test_unbiased_and_private(low, span, epsilon):
    domain = IntegerDomain(low, low + span)
    randomizer = solve(domain, epsilon)
    assert realised_ratio(randomizer) <= exp_lower(epsilon)
    reach = max(abs(v) for v in randomizer.values)
    assert max(abs(b) for b in biases(randomizer, domain.labels())) <= reach * 2.0**-52


@pytest.mark.parametrize("epsilon", ["1/2", "1", "4"])
def test_outputs_are_those_of_definition_23(epsilon):
    domain, e = RealDomain(0.0, 3.0, 7, "unbiased"), exp(Fraction(epsilon))
    labels = [float(y) for y in domain.labels()]
    expected = [((e + 6) * y - sum(labels)) / (e - 1) for y in labels]
    assert solve(domain, Fraction(epsilon)).values == pytest.approx(expected, rel=1e-12)


def test_words_too_small_for_epsilon_are_an_error():
    with pytest.raises(ValueError, match="too small"):
        solve(IntegerDomain(0, 3), Fraction(1, 1000), 4)
