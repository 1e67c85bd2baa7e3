"""Losses, and the head that turns a model's outputs into predictions.

Every loss is written per example; none looks at more than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from labeldp_trainer.data.labels import Task

LossName = Literal["squared", "absolute", "poisson", "cross_entropy"]
POISSON_FLOOR = 1e-3  # f − y·log f has no lower bound for the negative y of unbiased randomizers


@dataclass(frozen=True)
class Loss:
    """A loss by name, for a task.

    | name            | ℓ(f, y)                               | head                    |
    |-----------------|---------------------------------------|-------------------------|
    | `squared`       | ½(f − y)²                             | f is the output         |
    | `absolute`      | the distance of f and y               | f is the output         |
    | `poisson`       | f − y·ln f                            | f = softplus + a floor  |
    | `cross_entropy` | −Σ y·ln softmax, y a class or weights | logits                  |

    The weights of soft labels may be negative (a debiased loss) and need not sum to 1.
    """

    name: LossName
    task: Task

    def predictions(self, outputs: jax.Array) -> jax.Array:
        """[b] numbers, or [b, k] logits, from a model's outputs [b, 1 or k]."""
        if self.name == "cross_entropy":
            return outputs
        numbers = outputs[:, 0]
        return jax.nn.softplus(numbers) + POISSON_FLOOR if self.name == "poisson" else numbers

    def per_example(self, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Losses [b] for outputs [b, 1 or k]; targets [b], or soft labels [b, k]."""
        f = self.predictions(outputs)
        if self.name == "squared":
            return 0.5 * jnp.square(f - targets)
        if self.name == "absolute":
            return jnp.abs(f - targets)
        if self.name == "poisson":
            return f - targets * jnp.log(f)
        logs = jax.nn.log_softmax(f, axis=-1)
        if targets.ndim == logs.ndim:
            return -jnp.sum(targets * logs, axis=-1)
        return -jnp.take_along_axis(logs, targets[:, None], axis=-1)[:, 0]

    def slope(self, f: jax.Array, y: jax.Array) -> jax.Array:
        """∂ℓ(f, y)/∂f at a prediction f, for the losses with a slope that is affine in y."""
        if self.name == "squared":
            return f - y
        assert self.name == "poisson"
        return 1 - y / jnp.maximum(f, POISSON_FLOOR)

    def metrics(self, outputs: jax.Array, targets: jax.Array) -> dict[str, jax.Array]:
        """Per-example quantities [b] whose means describe a test set."""
        f = self.predictions(outputs)
        losses = {"loss": self.per_example(outputs, targets)}
        if self.name == "cross_entropy":
            hits = jnp.argmax(f, axis=-1).astype(targets.dtype) == targets
            return losses | {"accuracy": hits.astype(jnp.float32)}
        return losses | {"mse": jnp.square(f - targets), "mae": jnp.abs(f - targets)}
