"""The settings of a private step, without the data: sampling, clipping, noise and denoiser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jax.numpy as jnp
from jax import Array
from jaxtyping import Real

from labeldp_trainer.dp_gradient.accounting import Batches, NoisePlan
from labeldp_trainer.dp_gradient.integer_sums import (
    Loss,
    NoiseLattice,
    Split,
    per_user,
    whole,
)

# What a private step does: sampling, clipping, noise and denoiser, but not the data.


@dataclass(frozen=True)
class GradientProblem:
    """The learning problem: `loss` of one example and all its `labels`.

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


Denoiser = Literal["noop", "self_span", "self_conv", "alt_conv"]


@dataclass(frozen=True)
class StepConfig:
    """All choices of a step except the data. `noise_multiplier` must be calibrated for `plan`.

    `clip_norm` C, `noise_multiplier` σ: the sum gets discrete Gaussian noise of scale σ·C on the
    integers of `lattice`. `hull_units` is n2, for `alt_conv`. `smoothing` is λ. `tolerance`
    τ bounds the projection's relative error. `microbatch` rows are processed at a time, `split`
    over devices. `denoiser = noop` is DP-SGD. Raises ValueError if the choices contradict each
    other.
    """

    plan: NoisePlan
    clip_norm: float
    noise_multiplier: float
    denoiser: Denoiser = "noop"
    clip_hull: bool = True
    hull_units: int = 64
    smoothing: float = 1.0
    tolerance: float = 1e-2
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


def needed_batches(denoiser: Denoiser) -> tuple[Batches, ...]:
    """Return the kinds of batches a denoiser may be accounted with (Table 1, last column)."""
    if denoiser.startswith("self"):
        return ("public", "partition")
    return ("secret", "public", "partition")
