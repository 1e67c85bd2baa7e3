"""One private step: from parameters, data and random draws to a gradient estimate.

It estimates the *mean* gradient: the noisy sum is divided by the expected batch size qn, never by
the actual one, which is secret. Everything after the noise is post-processing of integers. Every
number that leaves a step is a function of the noisy sum, public features and independent
randomness.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.clipped_sum import clipped_sum
from labeldp_trainer.dp_gradient.draws import StepDraws
from labeldp_trainer.dp_gradient.generated import WORKING_SET, project_generated
from labeldp_trainer.dp_gradient.hull import (
    HullRows,
    Materialised,
    Vertices,
    materialise,
    matrix_free,
)
from labeldp_trainer.dp_gradient.label_free import LabelFree, public_centre
from labeldp_trainer.dp_gradient.projection import (
    Projection,
    project_gram,
    project_matrix_free,
    project_onto_span,
)
from labeldp_trainer.dp_gradient.step_config import GradientProblem, StepConfig
from labeldp_trainer.dp_gradient.tree import all_finite, norm


class StepReport(NamedTuple):
    """What a step may report: functions of the noisy gradient and of public data only.

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
    plan, label_free = config.plan, problem.label_free(y, config)
    if y.shape[0] != plan.units:
        raise ValueError(f"the plan is for {plan.units} units; the data have {y.shape[0]}")
    xs = _take(x, draws.indices)
    noisy = estimate = _noisy_mean(config, problem, params, xs, y[draws.indices], draws)
    if label_free is not None and config.needs_centre:
        centre = public_centre(
            label_free,
            params,
            _take(x, draws.centre),
            microbatch=config.microbatch,
            split=config.split,
        )
        estimate = jax.tree.map(jnp.add, noisy, centre)
    if config.denoiser == "noop":
        none = jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.ones((), bool)
        return estimate, StepReport(norm(noisy), *none)
    mask = draws.mask
    if config.denoiser == "alt_conv":
        xs, mask = _take(x, draws.alternative), jnp.ones((config.hull_units,), bool)
    rows = _hull_rows(config, problem, params, xs, mask, problem.labels_like(y), label_free)
    found = _project(config, problem, params, rows, estimate)
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
        problem.unit_vector(ys, config),
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
    config: StepConfig,
    problem: GradientProblem,
    params: PyTree,
    xs: PyTree,
    mask: Array,
    labels: Array,
    label_free: LabelFree | None,
) -> HullRows:
    scales = None
    if label_free is not None:
        scales = lax.map(
            lambda xi: label_free.vertex_scale(params, xi), xs, batch_size=config.microbatch
        )
    if problem.users:
        # A user's mean gradient lies in the hull of the users' examples' gradients.
        xs, present = xs
        xs = jax.tree.map(lambda leaf: leaf.reshape(present.size, *leaf.shape[2:]), xs)
        mask = (mask[:, None] & present).reshape(-1)
        scales = None if scales is None else jnp.repeat(scales, present.shape[1])
    clip_norm = config.clip_norm if config.clip_hull else None
    return HullRows(config.split(xs), labels, mask, clip_norm, scales)


def _project(
    config: StepConfig, problem: GradientProblem, params: PyTree, rows: HullRows, target: PyTree
) -> Projection:
    options: dict[str, Any] = {
        "smoothing": config.smoothing,
        "tolerance": config.tolerance,
        "max_iterations": config.max_iterations,
    }
    microbatch, spans = config.microbatch, config.denoiser == "self_span"
    if config.projection == "matrix_free":
        vertices: Vertices = matrix_free(problem.loss, params, rows, microbatch=microbatch)
    elif not spans and rows.mask.size * len(rows.labels) > WORKING_SET:
        return project_generated(
            problem.loss, params, rows, target, microbatch=microbatch, **options
        )
    else:
        vertices = materialise(problem.loss, params, rows)
    if spans:
        return project_onto_span(vertices, target, max_iterations=config.max_iterations)
    if isinstance(vertices, Materialised):
        return project_gram(vertices, target, **options)
    return project_matrix_free(vertices, target, **options)


def _take(x: PyTree, indices: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[indices], x)
