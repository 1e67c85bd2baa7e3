"""Laplace and staircase noise in whole counts against the definitions of the paper."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import analyse
from labeldp_verify.forms.exact_numbers import exp_lower
from labeldp_verify.forms.randomizers import check_additive

from labeldp_compile.rounding.additive_noise import (
    MAX_BLOCKS,
    LabelLattice,
    additive_noise,
    laplace_magnitudes,
    rounded_shape,
    staircase_magnitudes,
)
from verifier.tests.analysed import realised_ratio as additive_ratio

EPSILONS = ["0.1", "0.5", "1", "4", "8", "20"]
CLOSE = mpmath.mpf(2) ** -40


def laplace(D, epsilon, clip=False, spacing=1):
    lattice = LabelLattice(D // spacing + 1, spacing, 0.0, 1.0)
    return additive_noise(lambda e: laplace_magnitudes(e, D), lattice, Fraction(epsilon), clip)


def staircase(D, epsilon, width, clip=False):
    lattice = LabelLattice(D + 1, 1, 0.0, 1.0)
    return additive_noise(
        lambda e: staircase_magnitudes(e, D, width), lattice, Fraction(epsilon), clip
    )


def probability(r, n):
    block, i = divmod(n, r.period)
    weight = r.blocks[block + r.reach + 1] * r.shapes[block >= 0][i]
    return Fraction(weight, r.words**2)


def definition_17(n, D, epsilon):
    """p(n) ∝ exp(−|n|·ε/Δ) on the integers; Σ q^|n| = (1 + q)/(1 − q)."""
    q = mpmath.exp(-mpmath.mpf(epsilon) / D)
    return mpmath.power(q, abs(n)) * (1 - q) / (1 + q)


def definition_19(n, D, epsilon, r):
    """p_r(n) as the definition states it."""
    b = mpmath.exp(-mpmath.mpf(epsilon))
    a = (1 - b) / (2 * r + 2 * b * (D - r) - (1 - b))
    k, i = divmod(abs(n), D)
    return mpmath.power(b, k) * (a if i < r else b * a)


def sample(D, reach, *more):
    """Noises around every edge of the blocks near zero, and evenly spread ones."""
    last = reach * D
    edges = {n + d for n in (0, D, 2 * D, last, *more) for d in (-2, -1, 0, 1)}
    spread = range(0, last, max(last // 60, 1))
    return [s * n for n in sorted({*edges, *spread}) for s in (1, -1) if 0 <= n < last]


def worst_difference(randomizer, points, definition, *arguments):
    """The largest |probability − definition|, with 200 bits."""
    with mpmath.workprec(200):
        found = 0
        for n in points:
            p = probability(randomizer, n)
            found = max(
                found, abs(mpmath.mpf(p.numerator) / p.denominator - definition(n, *arguments))
            )
        return found


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_discrete_laplace_is_definition_17(epsilon):
    for D in (1, 2, 3, 51, 400, 1999):
        for clip in (False, True):
            r = laplace(D, epsilon, clip)
            points = sample(D, r.reach)
            assert worst_difference(r, points, definition_17, D, epsilon) < CLOSE


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_discrete_staircase_is_definition_19(epsilon):
    for D in (2, 3, 51, 400, 1999):
        for width in {1, 2, D // 7 + 1, D // 2, D - 1, D}:
            for clip in (False, True):
                r = staircase(D, epsilon, width, clip)
                points = sample(D, r.reach, width)
                assert worst_difference(r, points, definition_19, D, epsilon, width) < CLOSE


@pytest.mark.parametrize("epsilon", [*EPSILONS, "60"])
def test_unclipped_noise_keeps_the_mean(epsilon):
    for r in (
        laplace(1, epsilon),
        laplace(51, epsilon),
        staircase(51, epsilon, 11),
        staircase(300, epsilon, 1),
        laplace(1999, epsilon),
    ):
        mean = analyse(r).means()
        for i in {0, 1, r.labels // 2, r.labels - 1}:
            assert abs(mean[i] - i) < Fraction(r.period, 10**12)
        assert r.low + r.high == r.period  # as far below the lowest label as above the highest


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(1, 300),
    st.fractions(Fraction(1, 100), 60, max_denominator=10**6),
    st.none() | st.floats(0, 1),
    st.booleans(),
)
def test_whatever_epsilon_the_integers_are_private_and_spend_nearly_all(D, epsilon, gamma, clip):
    r = laplace(D, epsilon, clip)
    if gamma is not None:
        r = staircase(D, epsilon, max(1, round(gamma * D)), clip)
    check_additive(r)
    assert sum(r.blocks) == sum(r.shapes[0]) == sum(r.shapes[1]) == 2**64
    ratio = additive_ratio(r)
    assert ratio <= exp_lower(epsilon)
    if epsilon < 20 and D > 1:
        assert ratio > exp_lower(epsilon) * (1 - Fraction(1, 10**4))
    assert len(r.blocks) <= MAX_BLOCKS


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.integers(1, 2000), min_size=1, max_size=30), st.integers(1, 5000))
def test_shapes_are_rounded_so_that_no_ratio_grows(numbers, total):
    numbers = sorted(numbers, reverse=True)
    if total < len(numbers):
        with pytest.raises(ValueError, match="do not fit"):
            rounded_shape(numbers, total)
        return
    counts = rounded_shape(numbers, total)
    ideal = [Fraction(total * m, sum(numbers)) for m in numbers]
    assert sum(counts) == total
    assert min(counts) >= 1
    assert counts == sorted(counts, reverse=True)
    assert all(abs(c - x) <= len(numbers) for c, x in zip(counts, ideal, strict=True))
    if counts[0] > counts[-1] + 1:
        assert counts[0] <= ideal[0]
        assert all(c >= x for c, x in zip(counts, ideal, strict=True) if c < counts[0])
        assert Fraction(counts[0], counts[-1]) <= Fraction(numbers[0], numbers[-1])
