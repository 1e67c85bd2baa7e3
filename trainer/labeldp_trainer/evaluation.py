"""Means over a data set of any size, in batches inside jit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Float32, PyTree, Real, Shaped

from labeldp_trainer.data import DataPart
from labeldp_trainer.data.dataset import batches
from labeldp_trainer.losses import Loss
from labeldp_trainer.models import Model, Params

CHUNK = 1024  # examples
Means = dict[str, Float[Array, ""]]
Measure = Callable[[Float[Array, "b k"], Real[Array, "b ..."]], dict[str, Float[Array, " b"]]]
"""Quantities of each example, from a model's outputs and the targets."""


def mean_metrics(
    model: Model,
    measure: Measure,
    params: Params,
    x: PyTree[Shaped[Array, "n ..."]],
    targets: Real[Array, "n ..."],
) -> Means:
    """The means over all n examples of what ``measure(outputs, targets)`` gives for each."""
    n = targets.shape[0]
    chunk = min(CHUNK, n)
    steps = -(-n // chunk)

    def add(totals: Means, start: Array) -> tuple[Means, None]:
        places = start + jnp.arange(chunk, dtype=jnp.int32)
        inside = places < n
        rows = jnp.minimum(places, n - 1)
        outputs = model.apply(params, jax.tree.map(lambda leaf: leaf[rows], x))
        values = measure(outputs, targets[rows])
        sums = {
            name: jnp.sum(jnp.where(inside, value, jnp.zeros_like(value)))
            for name, value in values.items()
        }
        return {name: totals[name] + value for name, value in sums.items()}, None

    first = jax.tree.map(lambda leaf: leaf[:1], (x, targets))
    names = jax.eval_shape(lambda: measure(model.apply(params, first[0]), first[1]))
    zeros = {name: jnp.zeros((), jnp.float32) for name in names}
    starts = jnp.arange(steps, dtype=jnp.int32) * chunk
    totals, _ = jax.lax.scan(add, zeros, starts)
    return {name: total / n for name, total in totals.items()}


def make_evaluation(
    model: Model, loss: Loss
) -> Callable[[Params, PyTree[Shaped[Array, "n ..."]], Real[Array, " n"]], Means]:
    """A jitted function (params, x, targets) → the metrics of a test set."""

    def evaluate(params: Params, x: PyTree, targets: Array) -> Means:
        return mean_metrics(model, loss.metrics, params, x, targets)

    return jax.jit(evaluate)


def predict(model: Model, params: Params, part: DataPart) -> Float32[np.ndarray, "n k"]:
    """The outputs for all rows, batch by batch."""
    found = [
        np.asarray(_applied(model.apply, params, batch))[:count]
        for batch, count in batches(part.features, part.rows, max(min(CHUNK, part.rows), 1))
    ]
    return np.concatenate(found)


@partial(jax.jit, static_argnums=0)
def _applied(apply: Callable[..., Array], params: Params, x: PyTree) -> Array:
    return apply(params, x)
