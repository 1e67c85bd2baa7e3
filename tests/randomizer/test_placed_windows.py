"""Windows placed at prescribed means: exact privacy, and bias within half a step."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.rounding.windows import place_windows
from verifier.tests.analysed import biases, realised_ratio


def staircase(m, epsilon, generator):
    """Values and weights of a random two-level mechanism, as a solver would hand them over."""
    values = np.sort(generator.normal(0, 10, m))
    weights = generator.dirichlet(np.ones(m)) / (1 + 0.5 * math.expm1(epsilon))
    return values, weights


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.integers(2, 12),
    st.integers(0, 2**32),
    st.sampled_from(["1/10", "1", "4", "12"]),
    st.sampled_from([16, 40, None]),
)
def test_private_and_unbiased_within_half_a_step(m, seed, epsilon, bits):
    generator = np.random.default_rng(seed)
    epsilon = Fraction(epsilon)
    values, weights = staircase(m, float(epsilon), generator)
    if bits == 16 and weights.min() * 2**16 * math.expm1(float(epsilon)) < 1:
        return
    middle = float(np.dot(values, weights) / weights.sum())
    targets = sorted(Fraction(round(middle + x, 3)) for x in generator.uniform(-0.05, 0.05, 5))
    r = place_windows(values, weights, targets, epsilon, bits)
    assert realised_ratio(r) <= exp_lower(epsilon)
    step = (Fraction(r.values[-1]) - Fraction(r.values[0])) / r.words
    assert max(abs(b) for b in biases(r, targets)) <= step / 2
    assert list(r.offsets) == sorted(r.offsets)


def test_outer_values_move_just_enough():
    # Randomized response on {0, 1} debiased: values −a and 1 + a; given too narrow by a hair.
    e = math.e
    exact = 1 / (e - 1)
    weights = [1 / (e + 1)] * 2
    r = place_windows(
        [-exact + 1e-9, 1 + exact - 1e-9], weights, [Fraction(0), Fraction(1)], Fraction(1)
    )
    assert r.values == pytest.approx([-exact, 1 + exact], abs=1e-12)
    assert max(map(abs, biases(r, [Fraction(0), Fraction(1)]))) < Fraction(1, 2**60)


def test_weights_that_are_no_randomizer_are_refused():
    with pytest.raises(ValueError, match="add up"):
        place_windows([0.0, 1.0], [1e-6, 1e-6], [Fraction(0), Fraction(1)], Fraction(1))
    with pytest.raises(ValueError, match="do not fit"):
        place_windows([0.0, 1.0], [0.6, 0.6], [Fraction(0), Fraction(1)], Fraction(1))
    with pytest.raises(ValueError, match="do not fit"):
        place_windows([0.0, 1.0, 2.0], [0.2] * 3, [Fraction(0), Fraction(1)], Fraction(1), 1)
