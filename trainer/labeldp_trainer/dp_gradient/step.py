"""One private step: from parameters, data and what was drawn for it to a gradient estimate.

The estimate is that of the *mean* gradient: the noisy sum over the expected batch size qn (never
over the realized one, which is secret). Everything after the noise is post-processing of integers,
and every number that leaves is a function of the noisy sum, public features and independent
randomness.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.clipped_sum import clipped_sum
from labeldp_trainer.dp_gradient.draws import StepDraws
from labeldp_trainer.dp_gradient.hull import (
    HullRows,
    Materialised,
    Vertices,
    materialise,
    matrix_free,
)
from labeldp_trainer.dp_gradient.label_free import label_free_sum, public_centre, scales
from labeldp_trainer.dp_gradient.projection import (
    Projection,
    project_gram,
    project_matrix_free,
    project_onto_span,
)
from labeldp_trainer.dp_gradient.step_config import GradientProblem, StepConfig
from labeldp_trainer.dp_gradient.tree import all_finite, norm


class StepReport(NamedTuple):
    """What a step may tell: functions of the noisy gradient and of public data only."""

    noisy_norm: Float[Array, ""]
    estimate_norm: Float[Array, ""]
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

    x, y: the whole data set, a row a unit (for users, y is [users, examples]); `draws`: those of
    this step (`Randomness.step`). The same arguments give the same result, so re-doing a step after
    a crash releases nothing new. Raises ValueError if the data have not `plan.units` rows.
    """
    plan = config.plan
    if y.shape[0] != plan.units:
        raise ValueError(f"the plan is for {plan.units} units; the data have {y.shape[0]}")
    if problem.reduction == "sum" and config.denoiser.endswith("conv"):
        raise ValueError("a user's summed gradient is in no hull of examples: use reduction = mean")
    xs = _take(x, draws.indices)
    noisy = _noisy_mean(config, problem, params, xs, y[draws.indices], draws)
    estimate = noisy
    if config.needs_centre:
        centre = public_centre(
            problem.ball_of(problem.labels_like(y), config.centre),
            params,
            _take(x, draws.centre),
            scaling=config.scaling,
        )
        estimate = jax.tree.map(jnp.add, noisy, centre)
    if config.denoiser == "noop":
        return estimate, _report(noisy, estimate, None)
    if config.denoiser == "alt_conv":
        xs, mask = _take(x, draws.alternative), jnp.ones((config.hull_units,), bool)
    else:
        mask = draws.mask
    projected = _project(config, _vertices(config, problem, params, xs, mask, y), estimate)
    # Post-processing of a noisy, hence finite, vector; a model may still overflow on the way.
    finite = all_finite(projected.value)
    value = jax.tree.map(lambda v: jnp.where(finite, v, jnp.zeros_like(v)), projected.value)
    return value, _report(noisy, value, projected)


def _noisy_mean(
    config: StepConfig,
    problem: GradientProblem,
    params: PyTree,
    xs: PyTree,
    ys: Array,
    draws: StepDraws,
) -> PyTree:
    """Return (Σ clipped + noise)/(qn), from one sum of integers: the only way of labels to the
    outside."""
    if config.clipping == "label_free":
        summed = label_free_sum(
            problem.unit_loss,
            problem.ball_of(problem.labels_like(ys), config.centre),
            params,
            xs,
            ys,
            draws.mask,
            scaling=config.scaling,
        )
    else:
        summed = clipped_sum(
            problem.unit_loss,
            params,
            xs,
            ys,
            draws.mask,
            lattice=config.lattice,
            microbatch=config.microbatch,
            split=config.split,
        )
    return config.lattice.noisy_mean(summed, draws.noise, params, config.plan.batch)


def _vertices(
    config: StepConfig, problem: GradientProblem, params: PyTree, xs: PyTree, mask: Array, y: Array
) -> Vertices:
    labels = problem.labels_like(y)
    scale = None
    if config.clipping == "label_free":
        ball_of = problem.ball_of(labels, config.centre)
        scale = scales(ball_of, params, xs, scaling=config.scaling)
    if problem.reduction is not None:
        # A user's mean gradient lies in the hull of the users' examples' gradients.
        xs, present = xs
        examples = present.shape[1]
        xs = jax.tree.map(lambda leaf: leaf.reshape(present.size, *leaf.shape[2:]), xs)
        mask = (mask[:, None] & present).reshape(-1)
        scale = None if scale is None else jnp.repeat(scale, examples)
    clip_norm = config.clip_norm if config.clip_hull else None
    xs = config.split(xs)
    rows = HullRows(xs, labels, mask, clip_norm, scale)
    if config.projection == "gram":
        return materialise(problem.loss, params, rows)
    return matrix_free(problem.loss, params, rows, microbatch=config.microbatch)


def _project(config: StepConfig, vertices: Vertices, target: PyTree) -> Projection:
    if config.denoiser == "self_span":
        return project_onto_span(vertices, target, max_iterations=config.max_iterations)
    if isinstance(vertices, Materialised):
        return project_gram(
            vertices,
            target,
            smoothing=config.smoothing,
            tolerance=config.tolerance,
            max_iterations=config.max_iterations,
        )
    return project_matrix_free(
        vertices,
        target,
        smoothing=config.smoothing,
        tolerance=config.tolerance,
        max_iterations=config.max_iterations,
    )


def _take(x: PyTree, indices: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[indices], x)


def _report(noisy: PyTree, estimate: PyTree, projected: Projection | None) -> StepReport:
    if projected is None:
        none = (jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.ones((), bool))
        return StepReport(norm(noisy), norm(estimate), *none)
    return StepReport(
        norm(noisy), norm(estimate), projected.iterations, projected.distance, projected.certified
    )
