"""The exponential mechanism: probabilities in proportion to exp(−λℓ), spending all of ε."""

from fractions import Fraction
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms import IntegerDomain, RealDomain
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.exponential import Exponential
from labeldp_compile.mechanisms.mechanism import Problem
from labeldp_compile.rounding.additive_noise import whole_counts
from verifier.tests.analysed import realised_ratio

MECHANISM = Exponential(kind="exponential")


def solve(domain, epsilon, loss, word_bits=None):
    weights = [1] * domain.size
    return MECHANISM.build(Problem(domain, weights, epsilon, loss, word_bits)).randomizer


@settings(deadline=None)
@given(
    st.integers(2, 9),
    st.fractions(Fraction(1, 10), 9, max_denominator=20),
    st.sampled_from(["squared", "absolute", "zero_one"]),
)
def test_spends_all_of_epsilon_and_never_more(k, epsilon, loss):
    randomizer = solve(IntegerDomain(-2, k - 3), epsilon, loss)
    ratio = realised_ratio(randomizer)
    assert ratio <= exp_lower(epsilon)
    assert log(ratio) == pytest.approx(float(epsilon), rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_log_probabilities_are_linear_in_the_loss(loss):
    domain = RealDomain(0.5, 4.0, 8)
    randomizer = solve(domain, Fraction(2), loss)
    labels = [float(y) for y in domain.labels()]
    ell = {
        "squared": lambda v, y: (v - y) ** 2 / 2,
        "absolute": lambda v, y: abs(v - y),
        "poisson": lambda v, y: v - y * log(v),
    }[loss]
    rates = []
    for y, row in zip(labels, randomizer.counts, strict=True):
        for i in range(1, len(row)):
            distance = ell(labels[i], y) - ell(labels[0], y)
            if abs(distance) > 1e-3:
                rates.append((log(row[0]) - log(row[i])) / distance)
    assert max(rates) == pytest.approx(min(rates), rel=1e-9)
    assert min(rates) > 0


def test_too_many_labels_are_refused_before_anything_is_spent():
    MECHANISM.require_feasible(IntegerDomain(0, 1023), "squared", Fraction(1))
    with pytest.raises(ValueError, match="too large"):
        MECHANISM.require_feasible(IntegerDomain(0, 1024), "squared", Fraction(1))


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=8).filter(any),
    st.integers(8, 10**9),
)
def test_whole_counts_are_nearest(proportions, total):
    counts = whole_counts(proportions, total)
    assert sum(counts) == total
    room = total - len(counts)
    for count, p in zip(counts, proportions, strict=True):
        assert abs(count - 1 - Fraction(room * p, sum(proportions))) < 1
