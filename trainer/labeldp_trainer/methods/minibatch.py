"""Plain stochastic gradients: every epoch visits the examples in a fresh order."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.data.labels import Coded
from labeldp_trainer.devices import Devices, mean_metrics
from labeldp_trainer.methods.method import Setting, Stored
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.methods.stepped import Metrics, Stepped
from labeldp_trainer.models import Params

PerExample = Callable[[jax.Array, jax.Array], jax.Array]
Augment = Callable[[jax.Array, Any], Any]
"""(key, features of a batch) → others that should look the same to the model."""
Also = Callable[[Params, jax.Array, Any], jax.Array]
"""(params, key, features of a batch) → a loss that needs no targets."""


def minibatch_method(
    setting: Setting,
    targets: NDArray[Any] | Coded,
    statement: Statement,
    *,
    per_example: PerExample | None = None,
    mixup: float | None = None,
    augment: Augment | None = None,
    also: Also | None = None,
    keep: Stored | None = None,
    notes: tuple[str, ...] = (),
) -> Stepped:
    """Mean gradients of batches without replacement; n mod batch examples sit an epoch out.

    ``targets`` are [n], or k numbers for each, such as soft labels; ``per_example`` takes the place
    of the loss on outputs and targets of a batch. With ``mixup`` = α, features are
    x' = λx + (1 − λ)x₂ and the loss is that for both targets, weighed alike, with λ ~ Beta(α, α)
    for each batch (Zhang et al., *mixup*, 2018). ``augment`` changes the features of each batch
    first; ``also`` is added to the loss and sees them as they are.
    """
    model, devices = setting.model, Devices.of(setting.loaded)
    per_example = per_example or setting.loss.per_example
    n, batch = setting.dataset.train.rows, setting.loaded.config.training.batch_size
    steps = n // batch

    def draw(key: jax.Array, first: int, count: int) -> jax.Array:
        assert (first % steps, count) == (0, steps)
        return _epoch_rows(n, batch, key)

    arrays: tuple[Any, Any, Any] = (setting.dataset.train.features, targets, None)
    if isinstance(targets, Coded):
        arrays = (arrays[0], targets.codes, targets.rows.astype(np.float32))

    def batch_loss(params: Params, key: jax.Array, x: Any, y: jax.Array) -> jax.Array:
        return per_example(model.apply(params, x, key), y).mean()

    def mixed_loss(params: Params, key: jax.Array, x: Any, y: jax.Array) -> jax.Array:
        model_key, mix_key = jax.random.split(key)
        share = jax.random.beta(mix_key, jnp.float32(mixup), jnp.float32(mixup))
        # A batch is in random order already, so the reversed one is a random partner.
        mixed = jax.tree.map(lambda leaf: share * leaf + (1 - share) * leaf[::-1], x)
        outputs = model.apply(params, mixed, model_key)
        both = share * per_example(outputs, y) + (1 - share) * per_example(outputs, y[::-1])
        return both.mean()

    def gradient(
        params: Params, key: jax.Array, rows: jax.Array, arrays: Any
    ) -> tuple[Params, Metrics]:
        x, y = jax.tree.map(lambda leaf: leaf[devices.split(rows)], arrays[:2])
        y, clean = _decoded(y, arrays[2]), x
        if augment is not None:
            key, augment_key = jax.random.split(key)
            x = augment(augment_key, x)
        loss = batch_loss if mixup is None else mixed_loss
        value, estimate = jax.value_and_grad(loss)(params, key, x, y)
        if also is not None:
            more, slope = jax.value_and_grad(also)(params, jax.random.fold_in(key, 1), clean)
            value, estimate = value + more, jax.tree.map(jnp.add, estimate, slope)
        return estimate, {"batch_loss": value}

    def training_loss(params: Params, arrays: Any) -> jax.Array:
        def measure(outputs: jax.Array, y: jax.Array) -> Metrics:
            return {"loss": per_example(outputs, _decoded(y, arrays[2]))}

        return mean_metrics(model.apply, measure, params, *arrays[:2])["loss"]

    return Stepped(
        arrays=devices.everywhere(arrays),
        steps_per_epoch=steps,
        examples_per_epoch=steps * batch,
        draw=draw,
        gradient=gradient,
        training_loss=training_loss,
        statement=statement,
        keep=keep or {},
        notes=notes,
    )


def likelihood_loss(outputs: jax.Array, evidence: jax.Array) -> jax.Array:
    """−ln Σ_c softmax(outputs)_c·L_c: of what was seen instead of a class c with probability L_c.

    ``evidence`` are the ln L_c.
    """
    return -jax.nn.logsumexp(jax.nn.log_softmax(outputs, axis=-1) + evidence, axis=-1)


@partial(jax.jit, static_argnums=(0, 1))
def _epoch_rows(n: int, batch: int, key: jax.Array) -> jax.Array:
    """[steps, batch] rows in a random order; those that fill no batch are left out."""
    order = jax.random.permutation(key, jnp.arange(n, dtype=jnp.int32))
    return order[: n // batch * batch].reshape(-1, batch)


def _decoded(targets: jax.Array, rows: jax.Array | None) -> jax.Array:
    """Targets of a batch, or the rows of their codes."""
    return targets if rows is None else rows[targets]
