"""Plain stochastic gradients: every epoch visits the examples in a fresh order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from labeldp_trainer.evaluation import mean_metrics
from labeldp_trainer.methods.method import Method, Metrics, Setting
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Params


def minibatch_method(
    setting: Setting,
    targets: NDArray[Any],
    statement: Statement,
    *,
    keep: dict[str, NDArray[Any]] | None = None,
    notes: tuple[str, ...] = (),
) -> Method:
    """Mean gradients of batches without replacement; n mod batch examples sit an epoch out.

    ``targets`` are [n], or soft labels [n, k].
    """
    model, loss, devices = setting.model, setting.loss, setting.devices
    n, batch = setting.dataset.train.rows, setting.loaded.config.training.batch_size
    steps = n // batch

    def draw(key: jax.Array) -> jax.Array:
        order = jax.random.permutation(key, jnp.arange(n, dtype=jnp.int32))
        return order[: steps * batch].reshape(steps, batch)

    def gradient(
        params: Params, key: jax.Array, step: jax.Array, rows: jax.Array, arrays: Any
    ) -> tuple[Params, Metrics]:
        del step
        x, y = jax.tree.map(lambda leaf: leaf[devices.split(rows)], arrays)

        def mean_loss(params: Params) -> jax.Array:
            return loss.per_example(model.apply(params, x, key), y).mean()

        value, estimate = jax.value_and_grad(mean_loss)(params)
        return estimate, {"batch_loss": value}

    def training_loss(params: Params, arrays: Any) -> jax.Array:
        def measure(outputs: jax.Array, y: jax.Array) -> Metrics:
            return {"loss": loss.per_example(outputs, y)}

        return mean_metrics(model, measure, params, *arrays)["loss"]

    return Method(
        arrays=devices.everywhere((setting.dataset.train.features, targets)),
        steps_per_epoch=steps,
        examples_per_epoch=steps * batch,
        draw=draw,
        gradient=gradient,
        training_loss=training_loss,
        statement=statement,
        keep=keep or {},
        notes=notes,
    )
