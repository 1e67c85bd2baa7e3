"""What is summed are integers whose length is bounded in integers, whatever a gradient is."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_trainer.discrete_gaussian.sample import MOST_SIGMA
from labeldp_trainer.dp_gradient.integer_sums import (
    LONGEST,
    STEPS,
    Halves,
    NoiseLattice,
    add_rows,
    halves_of,
    no_longer,
)

NO_LONGER = jax.jit(no_longer, static_argnums=1)
MOST = LONGEST


@pytest.mark.parametrize("sigma", [2.0**-20, 0.3, 1.0, 3.084, 64.0, 1e5, 2.0**25])
def test_scale(sigma):
    lattice = NoiseLattice(0.8, sigma)
    assert 0 <= lattice.sigma - Fraction(sigma) * LONGEST < 1
    assert 64 <= lattice.sigma <= MOST_SIGMA or sigma < 1e-6
    assert 0.999 * LONGEST <= STEPS < LONGEST < 2**26


def length(vector):
    return sum(int(entry) ** 2 for entry in vector)


@pytest.mark.parametrize(
    "size", [1, 5, 1023, 1024, 1025, 15_210, pytest.param(1_100_000, marks=pytest.mark.slow)]
)
def test_lengths_are_compared_exactly(size):
    """One step below, at and above the bound; and vectors that would overflow 64 bits."""
    random = np.random.default_rng(size)
    for spread in (1, 5, 20):
        edge = max(2, min(MOST, (MOST >> 3) // math.isqrt(size) * spread))
        vector = random.integers(-edge + 1, edge, size).astype(np.int32)
        root = math.isqrt(length(vector))
        for bound in (root - 1, root, root + 1):
            if 0 < bound <= MOST:
                stated = bool(NO_LONGER(jnp.asarray(vector), bound))
                assert stated == (length(vector) <= bound**2)
    for entry in (MOST, -MOST):
        longest = np.full(size, entry, np.int32)
        assert bool(NO_LONGER(jnp.asarray(longest), MOST)) == (size == 1)


ENTRIES = st.one_of(
    st.floats(width=32, allow_nan=True, allow_infinity=True),
    st.sampled_from([3.4e38, -3.4e38, 1e-38, 1e-45, math.nan, math.inf, 0.0]),
)


@pytest.mark.slow
@given(st.lists(ENTRIES, min_size=6, max_size=6), st.sampled_from([1e-6, 0.7, 1e6]))
@settings(max_examples=150, deadline=None)
def test_any_vector_becomes_a_short_one(entries, clip_norm):
    lattice = NoiseLattice(clip_norm, 2.5)
    tree = {
        "a": jnp.asarray(entries[:2], jnp.float32),
        "b": jnp.asarray([entries[2:]], jnp.float32),
    }
    whole = np.asarray(jax.jit(lattice.integers)(tree))
    assert whole.dtype == np.int32
    assert length(whole) <= LONGEST**2
    vector = np.array(entries, np.float64)
    if np.isfinite(vector).all() and np.abs(vector).max() > 1e-30:
        vector *= min(1.0, clip_norm / np.linalg.norm(vector))
        expected = vector / clip_norm * STEPS
        np.testing.assert_allclose(whole, expected, atol=0.51 + 2e-6 * STEPS)
    elif not np.isfinite(vector).all():
        assert not whole.any()


def test_a_vector_that_clipping_left_too_long_counts_as_zero(monkeypatch):
    """The bound rests on the integers alone, not on the clip."""
    lattice = NoiseLattice(1.0, 2.0)
    name = "labeldp_trainer.dp_gradient.integer_sums.clip"
    for factor, kept in ((1.0, True), (1.0005, True), (1.002, False), (math.nan, False)):
        monkeypatch.setattr(name, lambda tree, bound, factor=factor: tree * factor)
        whole = np.asarray(lattice.integers(jnp.asarray([0.6, -0.8, 0.0], jnp.float32)))
        assert whole.any() == kept
        assert length(whole) <= LONGEST**2


def test_sums_and_noise_are_integers_of_64_bits():
    """Far beyond 32 bits, in any order, and back as floats of the sum alone."""
    random = np.random.default_rng(2)
    rows = random.integers(-MOST, MOST, (300, 7)).astype(np.int32)
    rows[:, 0] = MOST
    mask = random.uniform(size=300) < 0.8
    noise = random.integers(-(2**50), 2**50, 7)
    lattice = NoiseLattice(3.0, 2.0)
    like = {"a": jnp.zeros((2, 3), jnp.float32), "b": jnp.zeros(1, jnp.bfloat16)}

    @jax.jit
    def mean(rows, mask, noise):
        total = add_rows(add_rows(nothing(), rows[:100], mask[:100]), rows[100:], mask[100:])
        return lattice.noisy_mean(total, noise, like, 5)

    def nothing():
        with jax.enable_x64(True):
            return jnp.zeros(7, jnp.int64)

    found = mean(jnp.asarray(rows), jnp.asarray(mask), Halves(*map(jnp.asarray, halves_of(noise))))
    exact = rows[mask].astype(np.int64).sum(axis=0) + noise
    assert [leaf.dtype for leaf in jax.tree.leaves(found)] == [jnp.float32, jnp.float32]
    flat = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(found)])
    np.testing.assert_allclose(flat, exact * 3.0 / STEPS / 5, rtol=1e-6)
    order = random.permutation(300)
    again = mean(
        jnp.asarray(rows[order]),
        jnp.asarray(mask[order]),
        Halves(*map(jnp.asarray, halves_of(noise))),
    )
    assert all(np.array_equal(found[name], again[name]) for name in like)
