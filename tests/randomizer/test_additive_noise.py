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
from tests.randomizer.additive_reference import noises, probability
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


@pytest.mark.slow
def test_large_periods():
    D = 100_000
    for epsilon in ("0.1", "20"):
        r = laplace(D, epsilon)
        points = sample(D, r.reach)
        assert worst_difference(r, points, definition_17, D, epsilon) < CLOSE
        assert additive_ratio(r) <= exp_lower(Fraction(epsilon))
    for width in (1, 48, 70_000):  # one step high above 99,999 low ones is the hardest to round
        r = staircase(D, "20", width)
        points = sample(D, r.reach, width)
        assert worst_difference(r, points, definition_19, D, "20", width) < CLOSE


def test_a_fine_lattice_stands_for_the_continuous_distributions():
    """Definitions 18 and 20 with Δ = 1: the CDFs differ by no more than a lattice step's share."""
    D, epsilon = 1024, 2.0
    fine, stairs = laplace(D, 2, spacing=64), staircase(D, 2, 256)
    b, gamma = mpmath.exp(-epsilon), mpmath.mpf(256) / D
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    below_laplace = below_stairs = Fraction(0)
    largest_steps = [epsilon / 2 / D, float(height) / D]
    for n in range(-3 * D, 1):
        if n == -3 * D:
            below_laplace = sum((probability(fine, m) for m in noises(fine) if m < n), Fraction(0))
            below_stairs = sum(
                (probability(stairs, m) for m in noises(stairs) if m < n), below_stairs
            )
        below_laplace += probability(fine, n)
        below_stairs += probability(stairs, n)
        x = mpmath.mpf(n) / D
        assert abs(below_laplace - mpmath.exp(epsilon * x) / 2) < 1.01 * largest_steps[0]
        k, rest = divmod(-n, D)
        # Mass beyond |x|: what is left of this period, and all the later ones.
        part = max(256 - rest, 0) + b * (D - max(rest, 256))
        period = 256 + b * (D - 256)
        beyond = height / D * b**k * (part + period * b / (1 - b))
        assert abs(below_stairs - beyond) < 1.01 * largest_steps[1]


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


def test_what_does_not_fit_is_refused():
    lattice = LabelLattice(40, 1, 0.0, 1.0)

    def noise(epsilon, clip, bits):
        return additive_noise(
            lambda e: laplace_magnitudes(e, 39), lattice, Fraction(epsilon), clip, bits
        )

    for arguments in ((1, True, 5), ("0.01", False, 10), ("0.001", True, 8)):
        with pytest.raises(ValueError, match="too short for noise"):
            noise(*arguments)
    with pytest.raises(ValueError, match="reaches too far"):
        noise("0.0003", False, None)
    with pytest.raises(ValueError, match="word_bits"):
        noise(1, False, 65)
    assert noise("0.000001", True, None).reach == 1
