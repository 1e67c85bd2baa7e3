import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_trainer.data.users import rows_of_users
from labeldp_trainer.dp_gradient.integer_sums import NoiseLattice, clip, clipped_sum, per_user

from trainer.tests.compilation import as_in_training
from trainer.tests.models import (
    ADVERSARIES,
    adversary,
    cross_entropy,
    examples,
    flat,
    parameters,
    slow_clip,
    slow_gradient,
    without_noise,
)


def _sum(loss, params, x, y, mask, *, clip_norm, microbatch):
    """The sum of integers as gradients, without noise."""
    lattice = NoiseLattice(clip_norm, 1.0)
    total = clipped_sum(jax.grad(loss), params, x, y, mask, lattice=lattice, microbatch=microbatch)
    return without_noise(lattice, total, params)


SUM = jax.jit(
    _sum,
    static_argnums=0,
    static_argnames=("clip_norm", "microbatch"),
    compiler_options=as_in_training(),
)


@pytest.mark.parametrize("microbatch", [1, 3, 4, 10, 99])
@pytest.mark.parametrize("bound", [0.5, 1e3])
def test_against_a_slow_reference(microbatch, bound):
    params, x = parameters(), examples(10)
    y = jnp.arange(10, dtype=jnp.int32) % 3
    mask = jnp.arange(10) % 4 != 1
    summed = SUM(cross_entropy, params, x, y, mask, clip_norm=bound, microbatch=microbatch)
    slow = sum(
        slow_clip(slow_gradient(cross_entropy, params, x[i], y[i]), bound)
        for i in range(10)
        if mask[i]
    )
    rounded = 8 * bound / 2**25  # each row by half a lattice step at most
    np.testing.assert_allclose(flat(summed), slow, rtol=2e-5, atol=1e-5 + rounded)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(summed))


@pytest.mark.parametrize("kind", ADVERSARIES)
@pytest.mark.parametrize("row", [0, 4])
def test_one_label_moves_the_sum_by_at_most_2c(kind, row):
    """Theorem 7 (a), whatever the model does with a label: NaN, infinity, overflow, 1e38."""
    params, x = parameters(), examples(6)
    loss, mask, bound = adversary(kind), jnp.ones(6, bool), 0.7
    base = np.array([0, 1, 2, 0, 1, 2], np.int32)
    sums = []
    for label in (0, 1, 2, 3, -1, 2**31 - 1):
        y = base.copy()
        y[row] = label
        summed = SUM(loss, params, x, jnp.asarray(y), mask, clip_norm=bound, microbatch=4)
        sums.append(flat(summed))
        assert np.all(np.isfinite(sums[-1]))
    widest = max(np.linalg.norm(a - b) for a in sums for b in sums)
    assert widest <= 2 * bound * (1 + 1e-5)


def test_2c_is_reached():
    """The bound is tight, so accounting for less would be wrong."""
    params, x = parameters(), examples(1)
    ends = [
        flat(
            SUM(
                adversary("opposite"),
                params,
                x,
                jnp.asarray([label], jnp.int32),
                jnp.ones(1, bool),
                clip_norm=0.7,
                microbatch=1,
            )
        )
        for label in (0, 1)
    ]
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(1.4, rel=1e-5)


def test_a_masked_row_counts_for_nothing_even_if_it_is_nan():
    params, x = parameters(), examples(3)
    y = jnp.asarray([0, 1, 0], jnp.int32)
    mask = jnp.asarray([True, False, True])
    loss = adversary("nan")
    summed = SUM(loss, params, x, y, mask, clip_norm=1.0, microbatch=3)
    two = SUM(loss, params, x[::2], y[::2], mask[::2], clip_norm=1.0, microbatch=3)
    np.testing.assert_allclose(flat(summed), flat(two), rtol=1e-6)
    assert np.linalg.norm(flat(summed)) > 0.1


ENTRIES = st.floats(width=32, allow_nan=True, allow_infinity=True)


HUGE = st.sampled_from([3.4e38, -3.4e38, 1e38, 8.6e37, 1e-38, 1e-45, 1e30, 1e-30, 0.0])


@given(st.lists(st.one_of(ENTRIES, HUGE), min_size=4, max_size=4), st.floats(1e-3, 1e3))
@settings(max_examples=150, deadline=None)
def test_clipping_any_vector(entries, bound):
    tree = {
        "a": jnp.asarray(entries[:1], jnp.float32),
        "b": jnp.asarray(entries[1:], jnp.float32).reshape(3, 1),
    }
    clipped = flat(clip(tree, bound))
    vector = flat(tree)
    assert np.linalg.norm(clipped) <= bound * (1 + 1e-5)
    if not np.all(np.isfinite(vector)):
        assert not clipped.any()
    elif np.abs(vector).max() > 1e-30:
        np.testing.assert_allclose(
            clipped, slow_clip(vector, np.float32(bound)), rtol=1e-5, atol=1e-34
        )


def test_users_against_a_slow_reference():
    params, x = parameters(), examples(6).reshape(3, 2, 5)
    y = jnp.asarray([[0, 1], [2, 0], [1, 1]], jnp.int32)
    present = jnp.asarray([[True, True], [True, False], [False, False]])
    summed = SUM(
        per_user(cross_entropy),
        params,
        (x, present),
        y,
        jnp.ones(3, bool),
        clip_norm=0.4,
        microbatch=2,
    )
    slow = 0.0
    for user in range(3):
        own = [
            slow_gradient(cross_entropy, params, x[user, j], y[user, j])
            for j in range(2)
            if present[user, j]
        ]
        if own:
            slow = slow + slow_clip(sum(own) / len(own), 0.4)
    np.testing.assert_allclose(flat(summed), slow, rtol=2e-5, atol=1e-6)


def test_all_labels_of_a_user_move_the_sum_by_at_most_2c():
    params, x = parameters(), examples(8).reshape(2, 4, 5)
    present = jnp.ones((2, 4), bool)
    loss = per_user(adversary("opposite"))
    sums = []
    for labels in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]):
        y = jnp.asarray([labels, [0, 1, 1, 0]], jnp.int32)
        sums.append(
            flat(
                SUM(
                    loss,
                    params,
                    (x, present),
                    y,
                    jnp.ones(2, bool),
                    clip_norm=1.0,
                    microbatch=2,
                )
            )
        )
    widest = max(np.linalg.norm(a - b) for a in sums for b in sums)
    assert 1.0 < widest <= 2 * (1 + 1e-5)


def test_grouping_rows_by_user():
    users = np.array(["b", "a", "b", "c", "b", "a"])
    owners = np.unique(users, return_inverse=True)[1]
    groups = rows_of_users(owners, 2, seed=0)
    assert groups.rows.shape == (3, 2)
    assert groups.present.tolist() == [[True, True], [True, True], [True, False]]
    for row, name in zip(groups.rows, "abc", strict=True):
        assert set(users[row]) == {name}
    assert len(set(groups.rows[1])) == 2
    chosen = {tuple(sorted(rows_of_users(owners, 2, seed=s).rows[1])) for s in range(30)}
    assert chosen == {(0, 2), (0, 4), (2, 4)}
    with pytest.raises(ValueError, match="at least 1"):
        rows_of_users(owners, 0, seed=0)
    with pytest.raises(ValueError, match="has no row"):
        rows_of_users(owners + 1, 2, seed=0)
