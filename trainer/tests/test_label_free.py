from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.dp_gradient.integer_sums import NoiseLattice, clipped_sum, per_user
from labeldp_trainer.dp_gradient.problem import (
    LabelFree,
    example_ball,
    public_centre,
    user_ball,
)

from trainer.tests.models import (
    ADVERSARIES,
    adversary,
    cross_entropy,
    examples,
    flat,
    parameters,
    poisson,
    slow_gradient,
    squared,
    without_noise,
)

CLASSES = jnp.arange(3, dtype=jnp.int32)


def one_sum(loss, free, params, x, y, mask, microbatch=4):
    lattice, vector = NoiseLattice(free.clip_norm, 1.0), partial(free.vector, loss)
    total = clipped_sum(vector, params, x, y, mask, lattice=lattice, microbatch=microbatch)
    return without_noise(lattice, total, params)


def summed(loss, ball, params, x, y, bound=0.7, floor=1e-3, microbatch=4):
    mask, free = jnp.ones(y.shape[0], bool), LabelFree(ball, bound, floor)
    run = jax.jit(lambda p: one_sum(loss, free, p, x, y, mask, microbatch))
    return flat(run(params))


def slow_delta(loss, labels, params, x, y, bound, floor):
    gradients = np.stack([slow_gradient(loss, params, x, label) for label in labels])
    centre = gradients.mean(axis=0)
    radius = np.linalg.norm(gradients - centre, axis=1).max()
    scale = bound / max(radius, floor)
    return (slow_gradient(loss, params, x, y) - centre) * scale, scale, centre


@pytest.mark.parametrize("floor", [1e-3, 50.0])
def test_against_a_slow_reference(floor):
    params, x = parameters(), examples(7)
    y = jnp.asarray([0, 1, 2, 2, 1, 0, 0], jnp.int32)
    fast = summed(cross_entropy, example_ball(cross_entropy, CLASSES), params, x, y, floor=floor)
    slow = sum(
        slow_delta(cross_entropy, CLASSES, params, x[i], y[i], 0.7, floor)[0] for i in range(7)
    )
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "centre"),
    [(kind, ("mean", "none")[i % 2]) for i, kind in enumerate((*ADVERSARIES, ADVERSARIES[0]))],
)
def test_one_label_moves_the_sum_by_at_most_2c(kind, centre):
    """Theorem 8, with labels that the ball was not told about, too."""
    params, x = parameters(), examples(5)
    loss = adversary(kind)
    free, mask = LabelFree(example_ball(loss, CLASSES, centre), 0.7, 1e-3), jnp.ones(5, bool)
    run = jax.jit(lambda y: one_sum(loss, free, params, x, y, mask))
    sums = []
    for label in (0, 1, 2, 3, -1, 2**31 - 1):
        sums.append(flat(run(jnp.asarray([label, 0, 1, 2, 0], jnp.int32))))
        assert np.all(np.isfinite(sums[-1]))
    widest = max(np.linalg.norm(a - b) for a in sums for b in sums)
    assert widest <= 1.4 * (1 + 1e-5)


def test_the_last_clip_does_not_bite_inside_the_ball():
    """δ is affine in the gradient: with the floor out of the way its norm is at most C, reached."""
    params, x = parameters(), examples(6)
    free, mask = LabelFree(example_ball(cross_entropy, CLASSES), 0.7, 1e-3), jnp.ones(1, bool)
    run = jax.jit(lambda xs, y: one_sum(cross_entropy, free, params, xs, y, mask))
    for i in range(6):
        norms = []
        for label in range(3):
            y = jnp.asarray([label], jnp.int32)
            delta = flat(run(x[i : i + 1], y))
            slow, _, _ = slow_delta(cross_entropy, CLASSES, params, x[i], y[0], 0.7, 1e-3)
            np.testing.assert_allclose(delta, slow, rtol=1e-4, atol=1e-5)
            norms.append(np.linalg.norm(delta))
        assert max(norms) == pytest.approx(0.7, rel=1e-4)


@pytest.mark.parametrize("loss", [squared, poisson])
def test_two_ends_hold_all_labels_between_when_the_gradient_is_affine(loss):
    params, x = parameters(outputs=1), examples(8)
    ends = jnp.asarray([0.0, 10.0], jnp.float32)
    free, mask = LabelFree(example_ball(loss, ends), 0.7, 1e-3), jnp.ones(8, bool)
    run = jax.jit(lambda y: one_sum(loss, free, params, x, y, mask))
    for label in (0.0, 2.5, 5.0, 10.0):
        y = jnp.full(8, label, jnp.float32)
        slow = sum(slow_delta(loss, ends, params, x[i], y[i], 0.7, 1e-3)[0] for i in range(8))
        fast = flat(run(y))
        # No clip: δ = (2·label/10 − 1)·C·unit.
        np.testing.assert_allclose(fast, slow, rtol=1e-3, atol=1e-4)
    middle = flat(run(jnp.full(8, 5.0, jnp.float32)))
    assert np.linalg.norm(middle) < 1e-3


def test_with_its_public_centre_it_is_the_gradient_of_a_reweighted_loss():
    """(Σ δ_i)/n + mean of s_j·c_j over everybody = mean of s_i·g_i: direction is kept."""
    params, x = parameters(), examples(9)
    y = jnp.asarray([0, 1, 2] * 3, jnp.int32)
    ball = example_ball(cross_entropy, CLASSES)
    free = LabelFree(ball, 0.7, 1e-3)
    centre = flat(jax.jit(lambda p: public_centre(free, p, x, microbatch=4))(params))
    private = summed(cross_entropy, ball, params, x, y) / 9
    terms = [slow_delta(cross_entropy, CLASSES, params, x[i], y[i], 0.7, 1e-3) for i in range(9)]
    weighted = sum(
        scale * slow_gradient(cross_entropy, params, x[i], y[i])
        for i, (_, scale, _) in enumerate(terms)
    )
    np.testing.assert_allclose(private + centre, weighted / 9, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        jax.jit(lambda p: jax.vmap(partial(free.vertex_scale, p))(x))(params),
        [scale for _, scale, _ in terms],
        rtol=1e-4,
    )


def test_a_ball_that_is_not_finite_counts_as_zero():
    params, x = parameters(), examples(3).at[1].set(jnp.inf)
    ball = example_ball(cross_entropy, CLASSES)
    free = LabelFree(ball, 0.7, 1e-3)
    y = jnp.asarray([0, 1, 2], jnp.int32)
    all_rows = summed(cross_entropy, ball, params, x, y)
    np.testing.assert_allclose(
        all_rows, summed(cross_entropy, ball, params, x[::2], y[::2]), rtol=1e-5, atol=1e-6
    )
    run = jax.jit(lambda x: public_centre(free, params, x, microbatch=2))
    centre, two = flat(run(x)), flat(run(x[::2]))
    np.testing.assert_allclose(centre, two * 2 / 3, rtol=1e-5, atol=1e-6)
    weights = np.asarray(jax.jit(jax.vmap(partial(free.vertex_scale, params)))(x))
    assert weights[1] == 0.0
    assert weights[0] > 0.0


def test_a_users_ball_holds_every_combination_of_labels():
    params, x = parameters(), examples(3)
    present = jnp.asarray([True, True, False])
    loss = per_user(cross_entropy)
    ball_of = user_ball(example_ball(cross_entropy, CLASSES))
    ball = jax.jit(ball_of)(params, (x, present))
    centre, radius = flat(ball.centre), float(ball.radius)
    apart = [
        np.linalg.norm(slow_gradient(loss, params, (x, present), jnp.asarray([a, b, c])) - centre)
        for a in range(3)
        for b in range(3)
        for c in range(2)
    ]
    assert max(apart) <= radius * (1 + 1e-5)
    assert max(apart) > 0.5 * radius
