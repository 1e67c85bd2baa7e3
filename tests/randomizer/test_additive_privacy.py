"""The exact privacy of additive randomizers against brute force over outputs and labels."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.rounding.additive_noise import (
    LabelLattice,
    additive_noise,
    laplace_magnitudes,
    staircase_magnitudes,
)
from verifier.tests.analysed import realised_ratio as additive_ratio
from verifier.tests.integers import plain_ratio
from verifier.tests.test_additive_form import plain_ends_ratio, plain_windows_ratio


@st.composite
def built(draw):
    """Laplace and staircase noise in short words; None where the words are too short."""
    labels, spacing = draw(st.integers(2, 6)), draw(st.sampled_from([1, 1, 2, 4]))
    lattice = LabelLattice(labels, spacing, 0.0, 1.0)
    epsilon = draw(st.fractions(Fraction(1, 4), 12, max_denominator=1000))
    clip, bits = draw(st.booleans()), draw(st.integers(5, 12))
    width = draw(st.none() | st.integers(1, lattice.period))

    def magnitudes(shape_epsilon):
        if width is None:
            return laplace_magnitudes(shape_epsilon, lattice.period)
        return staircase_magnitudes(shape_epsilon, lattice.period, width)

    try:
        return epsilon, clip, additive_noise(magnitudes, lattice, epsilon, clip, bits)
    except ValueError:
        return epsilon, clip, None


def test_noise_in_short_words_is_private():
    found = []

    @settings(deadline=None, derandomize=True, max_examples=250)
    @given(built())
    def check(case):
        epsilon, clip, r = case
        found.append(r is not None)
        if r is None:
            return
        ratio = additive_ratio(r)
        assert ratio <= exp_lower(epsilon)
        assert ratio == max(plain_windows_ratio(r), plain_ends_ratio(r))
        actual = plain_ratio(r, r.labels)
        assert actual <= ratio
        if r.spacing == 1 and r.period > 1 and not clip:
            assert actual == ratio  # the labels fill the windows: no bound is more than that

    check()
    assert sum(found) > len(found) / 2


def test_a_wider_domain_than_the_noise_was_made_for_shows():
    """The same integers, a block with too little weight or a shape with a hole, are not ε-DP."""
    lattice = LabelLattice(6, 1, 0.0, 1.0)
    r = additive_noise(lambda e: laplace_magnitudes(e, 5), lattice, Fraction(1), False)
    limit = exp_lower(Fraction(1))
    assert additive_ratio(r) <= limit < additive_ratio(r) * Fraction(10**9 + 1, 10**9)
    for index in (r.reach + 3, r.reach - 2, 0):
        blocks = list(r.blocks)
        blocks[r.reach + 1] += blocks[index] // 10
        blocks[index] -= blocks[index] // 10
        if index == 0:
            blocks[r.reach + 1] += blocks[0] - 1
            blocks[0] = 1  # a tail too thin for the block before it
        assert additive_ratio(replace(r, blocks=tuple(blocks))) > limit
    below, from_zero = r.shapes
    hole = (*below[:2], 1, *below[3:4], below[4] + below[2] - 1)
    assert additive_ratio(replace(r, shapes=(hole, from_zero))) > limit
    # A clamp that comes closer to the labels folds less likely outputs together: still private.
    assert additive_ratio(replace(r, low=0, high=5)) <= limit


@pytest.mark.parametrize("index", [0, -1])
def test_a_folded_tail_alone_can_break_privacy(index):
    """Every inner ratio is fine, and the folded end of the tail is not."""
    lattice = LabelLattice(3, 1, 0.0, 1.0)
    r = additive_noise(lambda e: laplace_magnitudes(e, 2), lattice, Fraction(1, 2), True)
    blocks = list(r.blocks)
    moved = blocks[index] // 100
    blocks[index] -= moved
    blocks[1] += moved // 2
    blocks[2] += moved - moved // 2
    assert additive_ratio(r) <= exp_lower(Fraction(1, 2))
    assert additive_ratio(replace(r, blocks=tuple(blocks))) > exp_lower(Fraction(1, 2))
