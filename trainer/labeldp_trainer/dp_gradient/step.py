"""One private step: from parameters, data and random draws to a gradient estimate.

It estimates the *mean* gradient: the noisy sum is divided by the expected batch size qn, never by
the actual one, which is secret. Everything after the noise is post-processing of integers. Every
number that leaves a step is a function of the noisy sum, public features and independent
randomness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, Int32, Int64, PyTree, Real, Shaped, UInt32

from labeldp_trainer.discrete_gaussian.sample import Words, discrete_gaussian
from labeldp_trainer.dp_gradient.accounting import Batches, NoisePlan
from labeldp_trainer.dp_gradient.generated import project_generated, working_set_of
from labeldp_trainer.dp_gradient.integer_sums import (
    Halves,
    Loss,
    NoiseLattice,
    Split,
    all_finite,
    clipped_sum,
    halves_of,
    norm,
    per_user,
    whole,
)
from labeldp_trainer.dp_gradient.projection import (
    HullRows,
    Projection,
    Vertices,
    materialise,
    matrix_free,
    project_gram,
    project_onto_span,
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


# Draws everything random in the steps of a run, batches and noise, from one secret key.
#
# A batch is a true Poisson sample, an independent uniform sample, or a part of a partition. Where
# batches are secret, ε depends on their randomness. Everything is drawn on the host, step by
# step, without reading labels or features. The same key and step give the same draws, so a step
# that is repeated after a crash releases nothing new.

_SAMPLING, _NOISE, _ALTERNATIVE, _PARTITION = 0, 1, 2, 4


class Batch(NamedTuple):
    """`indices` into the data and a `mask`: rows that are not in the batch are padding."""

    indices: Int32[np.ndarray, " b"]
    mask: Bool[np.ndarray, " b"]


def poisson_batch(words: Words, *, units: int, batch: int, max_batch: int) -> Batch:
    """Sample every one of `units` independently with probability q = `batch`/`units`.

    The rate is ⌊q·2^32⌋/2^32, never more than q. If more than `max_batch` are sampled, a uniformly
    random `max_batch` of them are kept.

    Returns `max_batch` rows, sampled units first.
    """
    if not 1 <= batch <= max_batch <= units:
        raise ValueError(
            f"need 1 <= batch <= max_batch <= units; they are {batch}, {max_batch}, {units}"
        )
    threshold = (batch << 32) // units
    sampled = np.flatnonzero(words.draw32(units).astype(np.uint64) < np.uint64(threshold))
    if sampled.size > max_batch:
        sampled = np.sort(sampled[_shuffled(words, sampled.size)[:max_batch]])
    return _padded(sampled, max_batch)


def independent_batch(words: Words, *, units: int, size: int) -> Int32[np.ndarray, " b"]:
    """Return `size` distinct indices, uniform over the units; if `size` is `units`, all in
    order."""
    if not 0 <= size <= units:
        raise ValueError(f"need 0 <= size <= units; they are {size} and {units}")
    if size in (0, units):
        return np.arange(size, dtype=np.int32)
    return _shuffled(words, units)[:size].astype(np.int32)


def partition(words: Words, *, units: int, batch: int) -> list[Batch]:
    """Return the ⌈units/batch⌉ batches of an epoch, a uniformly random partition of the units.

    Every unit is in exactly one of them (the last one is padded). This is not Poisson sampling, so
    there is no amplification.
    """
    if not 1 <= batch <= units:
        raise ValueError(f"need 1 <= batch <= units; they are {batch} and {units}")
    order = _shuffled(words, units)
    return [_padded(order[start : start + batch], batch) for start in range(0, units, batch)]


def _shuffled(words: Words, count: int) -> Int64[np.ndarray, " n"]:
    """A permutation; it is uniform unless two words of 64 bits are equal."""
    return np.argsort(words.draw(count), kind="stable")


def _padded(rows: Int64[np.ndarray, " n"], size: int) -> Batch:
    indices = np.zeros(size, np.int32)
    indices[: rows.size] = rows
    return Batch(indices, np.arange(size) < rows.size)


class StepDraws(NamedTuple):
    """The random choices of one step.

    `indices` and `mask` of the batch; `noise` on each coordinate, in lattice steps; the units of
    the `alternative` batch, which is empty if a step does not use it.
    """

    indices: Int32[Array, " b"]
    mask: Bool[Array, " b"]
    noise: Halves
    alternative: Int32[Array, " n2"]


@dataclass(frozen=True)
class Randomness:
    """The draws of all steps of a run.

    Attributes:
        key: [8], secret: anyone who has it can remove the noise.
        config: of the steps.
        coordinates: entries of a gradient.
    """

    key: UInt32[np.ndarray, 8]
    config: StepConfig
    coordinates: int

    @property
    def bytes_of_step(self) -> int:
        """How many bytes the draws of a step take."""
        config = self.config
        return 8 * self.coordinates + 5 * config.plan.max_batch + 4 * self._alternative

    def step(self, number: int) -> StepDraws:
        """The draws of one step."""
        draws: StepDraws = jax.tree.map(lambda leaf: leaf[0], self.steps(number, 1))
        return draws

    def steps(self, first: int, count: int) -> StepDraws:
        """The draws of ``count`` steps, every array with a leading axis of that length."""
        numbers = range(first, first + count)
        batches = zip(numbers, self._batches(numbers), strict=True)
        drawn = [self._drawn(number, batch) for number, batch in batches]
        stacked: StepDraws = jax.tree.map(lambda *parts: np.stack(parts), *drawn)
        return stacked

    def _drawn(self, number: int, batch: Batch) -> StepDraws:
        words, sigma = Words(self.key, _NOISE, number), self.config.lattice.sigma
        parts: Any = (  # numpy arrays until they are moved to a device
            *batch,
            halves_of(discrete_gaussian(words.draw, self.coordinates, sigma)),
            independent_batch(
                Words(self.key, _ALTERNATIVE, number),
                units=self.config.plan.units,
                size=self._alternative,
            ),
        )
        return StepDraws(*parts)

    def _batches(self, numbers: range) -> Iterator[Batch]:
        plan = self.config.plan
        if plan.batches == "partition":
            for epoch, own in groupby(numbers, lambda number: number // plan.batches_per_epoch):
                words = Words(self.key, _PARTITION, epoch)
                parts = partition(words, units=plan.units, batch=plan.batch)
                yield from (parts[number % plan.batches_per_epoch] for number in own)
            return
        for number in numbers:
            words = Words(self.key, _SAMPLING, number)
            sizes = {"units": plan.units, "batch": plan.batch, "max_batch": plan.max_batch}
            yield poisson_batch(words, **sizes)

    @property
    def _alternative(self) -> int:
        """How many units the alternative batch has."""
        return self.config.hull_units if self.config.denoiser == "alt_conv" else 0


class StepReport(NamedTuple):
    """The report of a step: functions of the noisy gradient and of public data only.

    `iterations`, `distance` and `certified` are those of the projection: 0, 0 and true without one.
    """

    noisy_norm: Float[Array, ""]
    iterations: Int[Array, ""]
    distance: Float[Array, ""]
    certified: Bool[Array, ""]


def private_gradient(
    config: StepConfig,
    problem: GradientProblem,
    params: PyTree,
    x: PyTree[Shaped[Array, "n ..."]],
    y: Real[Array, "n ..."],
    draws: StepDraws,
) -> tuple[PyTree, StepReport]:
    """Return an estimate of the mean gradient at `params` and a report; pure, meant for jit.

    x, y: the whole data set, one row per unit (for users, y is [users, examples]); `draws`: those
    of this step (`Randomness.step`). The same arguments give the same result, so repeating a step
    after a crash releases nothing new. Raises ValueError unless the data have `plan.units` rows.
    """
    if y.shape[0] != config.plan.units:
        raise ValueError(f"the plan is for {config.plan.units} units; the data have {y.shape[0]}")
    xs = _take(x, draws.indices)
    noisy = _noisy_mean(config, problem, params, xs, y[draws.indices], draws)
    if config.denoiser == "noop":
        none = jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.ones((), bool)
        return noisy, StepReport(norm(noisy), *none)
    mask = draws.mask
    if config.denoiser == "alt_conv":
        xs, mask = _take(x, draws.alternative), jnp.ones((config.hull_units,), bool)
    rows = _hull_rows(config, problem, xs, mask, problem.labels_like(y))
    found = _project(config, problem, params, rows, noisy)
    # The noisy vector is finite, but the model may overflow during post-processing.
    finite = all_finite(found.value)
    value = jax.tree.map(lambda v: jnp.where(finite, v, jnp.zeros_like(v)), found.value)
    return value, StepReport(norm(noisy), found.iterations, found.distance, found.certified)


def _noisy_mean(
    config: StepConfig,
    problem: GradientProblem,
    params: PyTree,
    xs: PyTree,
    ys: Array,
    draws: StepDraws,
) -> PyTree:
    """Return (Σ clipped + noise)/(qn), from one sum of integers. Labels leave a step in no other
    way."""
    summed = clipped_sum(
        jax.grad(problem.unit_loss),
        params,
        xs,
        ys,
        draws.mask,
        lattice=config.lattice,
        microbatch=config.microbatch,
        split=config.split,
    )
    return config.lattice.noisy_mean(summed, draws.noise, params, config.plan.batch)


def _hull_rows(
    config: StepConfig, problem: GradientProblem, xs: PyTree, mask: Array, labels: Array
) -> HullRows:
    if problem.users:
        # A user's mean gradient lies in the hull of the users' examples' gradients.
        xs, present = xs
        xs = jax.tree.map(lambda leaf: leaf.reshape(present.size, *leaf.shape[2:]), xs)
        mask = (mask[:, None] & present).reshape(-1)
    return HullRows(config.split(xs), labels, mask, config.clip_norm)


def _project(
    config: StepConfig, problem: GradientProblem, params: PyTree, rows: HullRows, target: PyTree
) -> Projection:
    room, microbatch = working_set_of(params), config.microbatch
    few = rows.mask.size * len(rows.labels) <= room
    if config.denoiser == "self_span":
        vertices: Vertices = (
            materialise(problem.loss, params, rows)
            if few
            else matrix_free(problem.loss, params, rows, microbatch=microbatch)
        )
        return project_onto_span(vertices, target)
    options: dict[str, Any] = {"smoothing": config.smoothing, "tolerance": config.tolerance}
    if few:
        return project_gram(materialise(problem.loss, params, rows), target, **options)
    sizes = {"microbatch": microbatch, "working_set": room}
    return project_generated(problem.loss, params, rows, target, **sizes, **options)


def _take(x: PyTree, indices: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[indices], x)
