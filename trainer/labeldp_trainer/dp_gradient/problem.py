"""What a private step does, without the data: sampling, clipping, noise and denoiser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.accounting import Batches, NoisePlan
from labeldp_trainer.dp_gradient.integer_sums import (
    Loss,
    NoiseLattice,
    Split,
    UnitVector,
    all_finite,
    in_microbatches,
    norm,
    per_user,
    user_mean,
    whole,
    zeros_like_sum,
)

# Label-free clipping: centre and scale a unit's gradient by what is public about it (Theorem 8).
#
# Features are public. So the ball that contains every gradient that a unit could have, over all
# labels, is public too. With its centre c_i and radius r_i, the private sum is that of
#
#     δ_i = (g_i − c_i) · s_i,  s_i = C / max(r_i, r0).
#
# No label can make δ_i longer than C, and the scale does not depend on the label. So the sum of
# δ_i is an unbiased part of the gradient of the loss in which unit i has weight s_i. Ordinary
# clipping scales by ‖g_i‖, which depends on the label: it shrinks the gradients of exactly those
# labels that the model finds surprising.
#
# The rest of that gradient, the mean of s_j·c_j, is public. It must be computed from all units,
# or from a batch that is drawn independently of the private one. Computed from the private batch,
# even inside the noisy sum, it would disclose who is in that batch.

Centre = Literal["mean", "none"]


class Ball(NamedTuple):
    """A ball that holds every gradient a unit can have: `centre`, a pytree like params, and
    `radius`."""

    centre: PyTree
    radius: Float[Array, ""]


BallOf = Callable[[PyTree, PyTree], Ball]
"""`ball_of(params, x)` for the features x of one unit; it never sees a label."""


@dataclass(frozen=True)
class LabelFree:
    """How a unit's gradient is centred and scaled: C (`clip_norm`) and r0 (`radius_floor`) of
    s = C / max(r, r0)."""

    ball_of: BallOf
    clip_norm: float
    radius_floor: float

    def ball_and_scale(self, params: PyTree, x: PyTree) -> tuple[Ball, Float[Array, ""]]:
        """Return the ball of a unit and its s, which is NaN for a NaN radius."""
        ball = self.ball_of(params, x)
        return ball, self.clip_norm / jnp.maximum(ball.radius, self.radius_floor)

    def vector(self, loss: Loss, params: PyTree, x: PyTree, y: Real[Array, ...]) -> PyTree:
        """Return δ of a unit: a vector for `clipped_sum`, which does not clip it inside the ball.

        Because of the clip, privacy depends on one line of code alone. It holds for any label, loss
        or ball: NaN, out of the domain, not affine.
        """
        ball, scale = self.ball_and_scale(params, x)
        gradient = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g, c: (g - c) * scale.astype(g.dtype), gradient, ball.centre)

    def vertex_scale(self, params: PyTree, x: PyTree) -> Float[Array, ""]:
        """Return s, zero where the ball is not finite: the scale of hull vertices."""
        _, scale = self.ball_and_scale(params, x)
        return jnp.where(jnp.isfinite(scale), scale, jnp.zeros_like(scale))


def example_ball(loss: Loss, labels: Real[Array, " K"], centre: Centre = "mean") -> BallOf:
    """Return the ball of one example over `labels`.

    For classes, give all of them. For a loss whose gradient is affine in the label (squared,
    Poisson log), the two ends of the interval are enough, because a ball is convex. For other
    losses, give a grid: a label between its points can cost utility (its δ is clipped), never
    privacy. `mean` puts the centre at the mean of the K gradients, which for two ends is their
    exact middle; `none` puts it at zero.
    """

    def ball_of(params: PyTree, x: PyTree) -> Ball:
        gradients = jax.vmap(lambda y: jax.grad(loss)(params, x, y))(labels)
        middle = jax.tree.map(lambda g: jnp.mean(g, axis=0), gradients)
        if centre == "none":
            middle = jax.tree.map(jnp.zeros_like, middle)
        apart = jax.vmap(lambda g: norm(jax.tree.map(jnp.subtract, g, middle)))(gradients)
        return Ball(middle, jnp.max(apart))

    return ball_of


def user_ball(ball_of: BallOf) -> BallOf:
    """Return the ball of one user, x = (xs, present), from that of one example.

    A mean of vectors, each in its ball, is in the ball of the mean centre and the mean radius.
    """

    def of_user(params: PyTree, x: PyTree) -> Ball:
        xs, present = x
        balls = jax.vmap(ball_of, (None, 0))(params, xs)
        return Ball(*jax.tree.map(lambda part: user_mean(part, present), tuple(balls)))

    return of_user


def public_centre(
    label_free: LabelFree,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    *,
    microbatch: int,
    split: Split = whole,
) -> PyTree:
    """Return the mean of s_j·c_j over rows that were drawn independently of the private batch.

    A unit whose ball is not finite counts as zero, as its δ does.
    """
    rows = jax.tree.leaves(x)[0].shape[0]

    def one(xi: PyTree, kept: Bool[Array, ""]) -> PyTree:
        ball, scale = label_free.ball_and_scale(params, xi)
        usable = kept & all_finite(ball.centre) & jnp.isfinite(ball.radius)
        return jax.tree.map(
            lambda c: jnp.where(usable, c * scale.astype(c.dtype), jnp.zeros_like(c)), ball.centre
        )

    def body(total: PyTree, part: tuple[PyTree, Array]) -> tuple[PyTree, None]:
        terms = jax.vmap(one)(*split(part))
        return jax.tree.map(lambda t, c: t + jnp.sum(c, axis=0).astype(t.dtype), total, terms), None

    parts = in_microbatches((x, jnp.ones((rows,), bool)), rows, microbatch)
    summed = lax.scan(body, zeros_like_sum(params), parts)[0]
    return jax.tree.map(lambda leaf: leaf / rows, summed)


# What a private step does: sampling, clipping, noise and denoiser, but not the data.


@dataclass(frozen=True)
class GradientProblem:
    """What is learned: `loss` of one example and all its `labels`.

    `labels` are all classes, or the two ends of the label interval when the gradient is affine in
    the label (squared and Poisson log loss); labels must be clamped to it. With `users` the unit is
    a user, whose examples' gradients are averaged: x is `(xs, present)` and y [users, examples]
    (`integer_sums.py`). Otherwise a unit is an example.
    """

    loss: Loss
    labels: tuple[float, ...]
    users: bool = False

    @property
    def unit_loss(self) -> Loss:
        """The loss of one unit."""
        return per_user(self.loss) if self.users else self.loss

    def labels_like(self, y: Real[Array, "b ..."]) -> Real[Array, " K"]:
        """Return the labels in the type of y."""
        return jnp.asarray(self.labels, y.dtype)

    def label_free(self, y: Real[Array, "b ..."], config: StepConfig) -> LabelFree | None:
        """Return how gradients are centred and scaled for labels like y; None if they are not."""
        if config.clipping == "standard":
            return None
        ball = example_ball(self.loss, self.labels_like(y), config.centre)
        ball = user_ball(ball) if self.users else ball
        return LabelFree(ball, config.clip_norm, config.radius_floor)

    def unit_vector(self, y: Real[Array, "b ..."], config: StepConfig) -> UnitVector:
        """Return the vector of a unit that is clipped and summed."""
        label_free = self.label_free(y, config)
        if label_free is None:
            return jax.grad(self.unit_loss)
        return partial(label_free.vector, self.unit_loss)


Denoiser = Literal["noop", "self_span", "self_conv", "alt_conv"]


@dataclass(frozen=True)
class StepConfig:
    """All choices of a step except the data. `noise_multiplier` must be calibrated for `plan`.

    `clip_norm` C, `noise_multiplier` σ: the sum gets discrete Gaussian noise of scale σ·C on the
    integers of `lattice`. `radius_floor` is r0 of label-free clipping, in units of a gradient's
    norm; `centre_units` how many units its public centre is computed on. `hull_units` is n2, for
    `alt_conv`. `smoothing` is λ. `tolerance` τ bounds the projection's relative error;
    `max_iterations` None means the projection's default. `microbatch` rows are processed at a time,
    `split` over devices. `denoiser = noop` with `clipping = standard` is DP-SGD. Raises ValueError
    if the choices contradict each other.
    """

    plan: NoisePlan
    clip_norm: float
    noise_multiplier: float
    clipping: Literal["standard", "label_free"] = "standard"
    denoiser: Denoiser = "noop"
    projection: Literal["gram", "matrix_free"] = "gram"
    clip_hull: bool = True
    hull_units: int = 64
    smoothing: float = 1.0
    tolerance: float = 1e-2
    max_iterations: int | None = None
    centre: Centre = "mean"
    centre_units: int = 256
    radius_floor: float = 1e-3
    microbatch: int = 32
    split: Split = whole

    def __post_init__(self) -> None:
        """Check what a type cannot."""
        NoiseLattice(self.clip_norm, self.noise_multiplier)
        if self.plan.batches not in needed_batches(self.denoiser):
            raise ValueError(
                f"{self.denoiser} looks at the batch's features, so batches are not secret: "
                "use a plan with batches = public or partition (no amplification by sampling)"
            )

    @cached_property
    def lattice(self) -> NoiseLattice:
        """The integers that are summed and get the noise."""
        return NoiseLattice(self.clip_norm, self.noise_multiplier)

    @property
    def needs_centre(self) -> bool:
        """Whether a public centre term is added."""
        return self.clipping == "label_free" and self.centre == "mean"


def needed_batches(denoiser: Denoiser) -> tuple[Batches, ...]:
    """Return the kinds of batches a denoiser may be accounted with (Table 1, last column)."""
    if denoiser.startswith("self"):
        return ("public", "partition")
    return ("secret", "public", "partition")
