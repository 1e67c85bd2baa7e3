"""Label-free clipping: centre and scale a unit's gradient by what is public about it (Theorem 8).

Features are public, so the ball that holds all gradients a unit could have, over all labels, is
public, too. With centre c_i and radius r_i the private sum is that of

    δ_i = (g_i − c_i) · s_i,  s_i = C / max(r_i, r0),

which no label can push beyond C, so that no label changes the scale either: the sum of δ_i is an
unbiased part of the gradient of the loss in which unit i has weight s_i. Ordinary clipping scales
by ‖g_i‖, which depends on the label, and shrinks just those labels that the model finds
surprising.

The rest of that gradient, the mean of s_j·c_j, is public. It must be computed from all units or
from a batch drawn independently of the private one, never from the private batch, not even inside
the noisy sum: it would show who is in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int64, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.clipped_sum import Split, in_microbatches, sum_over_units, whole
from labeldp_trainer.dp_gradient.lattice import NoiseLattice
from labeldp_trainer.dp_gradient.sampling import Reduction, example_weights
from labeldp_trainer.dp_gradient.tree import Loss, all_finite, norm, zeros_like_sum

Centre = Literal["mean", "none"]


class Ball(NamedTuple):
    """A ball that holds every gradient a unit can have: `centre`, a pytree like params, and
    `radius`."""

    centre: PyTree
    radius: Float[Array, ""]


BallOf = Callable[[PyTree, PyTree], Ball]
"""`ball_of(params, x)` for the features x of one unit; it never sees a label."""


@dataclass(frozen=True)
class Scaling:
    """The `lattice` with its C and r0 (`radius_floor`) of s = C / max(r, r0); rows a `microbatch`,
    and how they are `split` over devices."""

    lattice: NoiseLattice
    radius_floor: float
    microbatch: int
    split: Split = whole

    def of(self, ball: Ball) -> Float[Array, ""]:
        """Return s; NaN for a NaN radius, which the callers turn into zero."""
        return self.lattice.clip_norm / jnp.maximum(ball.radius, self.radius_floor)


def example_ball(loss: Loss, labels: Real[Array, " K"], centre: Centre = "mean") -> BallOf:
    """Return the ball of one example over `labels`.

    For classes: all of them. For a loss whose gradient is affine in the label (squared, Poisson
    log) the two ends of the label interval suffice: a ball is convex. For other losses give a
    grid; a label in between then costs utility (its δ is clipped), never privacy. `mean` puts the
    centre at the mean of the K gradients, for two ends the exact middle; `none` at zero.
    """

    def ball_of(params: PyTree, x: PyTree) -> Ball:
        gradients = jax.vmap(lambda y: jax.grad(loss)(params, x, y))(labels)
        middle = jax.tree.map(lambda g: jnp.mean(g, axis=0), gradients)
        if centre == "none":
            middle = jax.tree.map(jnp.zeros_like, middle)
        apart = jax.vmap(lambda g: norm(jax.tree.map(jnp.subtract, g, middle)))(gradients)
        return Ball(middle, jnp.max(apart))

    return ball_of


def user_ball(ball_of: BallOf, reduction: Reduction = "mean") -> BallOf:
    """Return the ball of one user, x = (xs, present), from that of one example.

    A sum of vectors, each in its ball, is in the ball of the summed centres and the summed radii.
    """

    def of_user(params: PyTree, x: PyTree) -> Ball:
        xs, present = x
        balls = jax.vmap(ball_of, (None, 0))(params, xs)
        weights = example_weights(present, reduction, balls.radius.dtype)
        centre = jax.tree.map(
            lambda c: jnp.tensordot(weights.astype(c.dtype), c, axes=1), balls.centre
        )
        return Ball(centre, jnp.sum(weights * balls.radius))

    return of_user


def label_free_sum(
    loss: Loss,
    ball_of: BallOf,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    y: Real[Array, "b ..."],
    mask: Bool[Array, " b"],
    *,
    scaling: Scaling,
) -> Int64[Array, " d"]:
    """Return Σ over masked rows of δ_i in integers, each clipped once more to C (Theorem 8).

    The last clip never bites on a label inside the ball. It is there so that privacy rests on one
    line of code, whatever the label, the loss or the ball: NaN, out of the domain, not affine.
    """

    def vector(xi: PyTree, yi: Array) -> PyTree:
        ball = ball_of(params, xi)
        scale = scaling.of(ball)
        gradient = jax.grad(loss)(params, xi, yi)
        return jax.tree.map(lambda g, c: (g - c) * scale.astype(g.dtype), gradient, ball.centre)

    return sum_over_units(
        vector,
        params,
        x,
        y,
        mask,
        lattice=scaling.lattice,
        microbatch=scaling.microbatch,
        split=scaling.split,
    )


def public_centre(
    ball_of: BallOf,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    *,
    scaling: Scaling,
) -> PyTree:
    """Return the mean of s_j·c_j over rows that were drawn independently of the private batch.

    A unit whose ball is not finite counts as zero, as its δ does.
    """
    rows = jax.tree.leaves(x)[0].shape[0]

    def body(total: PyTree, part: tuple[PyTree, Array]) -> tuple[PyTree, None]:
        xs, kept = scaling.split(part)
        terms = jax.vmap(one)(xs, kept)
        return jax.tree.map(lambda t, c: t + jnp.sum(c, axis=0).astype(t.dtype), total, terms), None

    def one(xi: PyTree, kept: Array) -> PyTree:
        ball = ball_of(params, xi)
        scale = scaling.of(ball)
        usable = kept & all_finite(ball.centre) & jnp.isfinite(ball.radius)
        return jax.tree.map(
            lambda c: jnp.where(usable, c * scale.astype(c.dtype), jnp.zeros_like(c)), ball.centre
        )

    parts = in_microbatches((x, jnp.ones((rows,), bool)), rows, scaling.microbatch)
    summed = lax.scan(body, zeros_like_sum(params), parts)[0]
    return jax.tree.map(lambda leaf: leaf / rows, summed)


def scales(
    ball_of: BallOf,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    *,
    scaling: Scaling,
) -> Float[Array, " b"]:
    """Return s_j, zero where the ball is not finite: the scale of hull vertices."""

    def one(xi: PyTree) -> Array:
        scale = scaling.of(ball_of(params, xi))
        return jnp.where(jnp.isfinite(scale), scale, jnp.zeros_like(scale))

    result: Array = lax.map(one, x, batch_size=scaling.microbatch)
    return result
