"""Losses of predictions, of numpy's arrays or JAX's."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Real

from labeldp_trainer.data.labels import Task
from labeldp_trainer.operators import POISSON_FLOOR, log_softmax, namespace, softplus

LossName = Literal["squared", "absolute", "poisson", "cross_entropy"]


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

    def predictions(self, outputs: Float[Any, "b k"]) -> Float[Any, " b"] | Float[Any, "b k"]:
        """Numbers from a model's only output, or its logits."""
        if self.name == "cross_entropy":
            return outputs
        numbers = outputs[:, 0]
        return softplus(numbers) + POISSON_FLOOR if self.name == "poisson" else numbers

    def per_example(
        self, outputs: Float[Any, "b k"], targets: Real[Any, " b"] | Float[Any, "b k"]
    ) -> Float[Any, " b"]:
        """Losses for a model's outputs and labels, which may be soft."""
        f, xp = self.predictions(outputs), namespace(outputs)
        if self.name == "squared":
            return 0.5 * xp.square(f - targets)
        if self.name == "absolute":
            return xp.abs(f - targets)
        if self.name == "poisson":
            return f - targets * xp.log(f)
        logs = log_softmax(f)
        if targets.ndim == logs.ndim:
            return -xp.sum(targets * logs, axis=-1)
        return -xp.take_along_axis(logs, targets[:, None], axis=-1)[:, 0]

    def slope(self, f: Float[Any, "*shape"], y: Real[Any, "*shape"]) -> Float[Any, "*shape"]:
        """∂ℓ(f, y)/∂f at a prediction f, for the losses with a slope that is affine in y."""
        if self.name == "squared":
            return f - y
        assert self.name == "poisson"
        return 1 - y / namespace(f).maximum(f, POISSON_FLOOR)

    def metrics(
        self, outputs: Float[Any, "b k"], targets: Real[Any, " b"]
    ) -> dict[str, Float[Any, " b"]]:
        """Per-example quantities whose means describe a test set."""
        f, xp = self.predictions(outputs), namespace(outputs)
        losses = {"loss": self.per_example(outputs, targets)}
        if self.name == "cross_entropy":
            hits = xp.argmax(f, axis=-1).astype(targets.dtype) == targets
            return losses | {"accuracy": hits.astype(np.float32)}
        return losses | {"mse": xp.square(f - targets), "mae": xp.abs(f - targets)}
