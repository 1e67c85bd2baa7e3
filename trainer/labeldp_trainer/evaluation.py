"""Means over a data set of any size, in batches inside jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.data import Part
from labeldp_trainer.losses import Loss
from labeldp_trainer.models import Model, Params

CHUNK = 1024  # examples
Means = dict[str, jax.Array]


def mean_metrics(
    model: Model,
    measure: Callable[[jax.Array, jax.Array], Means],
    params: Params,
    x: Any,
    targets: jax.Array,
) -> Means:
    """The means over all n examples of what ``measure(outputs, targets)`` gives for each [b]."""
    n = targets.shape[0]
    chunk = min(CHUNK, n)
    steps = -(-n // chunk)

    def add(totals: Means, start: jax.Array) -> tuple[Means, None]:
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


def make_evaluation(model: Model, loss: Loss) -> Callable[[Params, Any, jax.Array], Means]:
    """A jitted function (params, x, targets) → the metrics of a test set."""

    def evaluate(params: Params, x: Any, targets: jax.Array) -> Means:
        return mean_metrics(model, loss.metrics, params, x, targets)

    return jax.jit(evaluate)


def predict(model: Model, params: Params, part: Part) -> NDArray[np.float32]:
    """[n, k] the outputs for all rows, chunk by chunk."""
    apply = jax.jit(model.apply)
    chunks = [
        apply(params, jax.tree.map(lambda leaf: leaf[i : i + CHUNK], part.features))  # noqa: B023
        for i in range(0, part.rows, CHUNK)
    ]
    return np.concatenate([np.asarray(chunk) for chunk in chunks])
