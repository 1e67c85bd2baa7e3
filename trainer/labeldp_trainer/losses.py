"""Losses and optimizers."""

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Real

from labeldp_trainer.config.model import OptimizerConfig
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

    def predictions(self, outputs: Float[Array, "b k"]) -> Float[Array, " b"] | Float[Array, "b k"]:
        """Numbers from a model's only output, or its logits."""
        if self.name == "cross_entropy":
            return outputs
        numbers = outputs[:, 0]
        return jax.nn.softplus(numbers) + POISSON_FLOOR if self.name == "poisson" else numbers

    def per_example(
        self, outputs: Float[Array, "b k"], targets: Real[Array, " b"] | Float[Array, "b k"]
    ) -> Float[Array, " b"]:
        """Losses for a model's outputs and labels, which may be soft."""
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

    def slope(self, f: Float[Array, "*shape"], y: Real[Array, "*shape"]) -> Float[Array, "*shape"]:
        """∂ℓ(f, y)/∂f at a prediction f, for the losses with a slope that is affine in y."""
        if self.name == "squared":
            return f - y
        assert self.name == "poisson"
        return 1 - y / jnp.maximum(f, POISSON_FLOOR)

    def metrics(
        self, outputs: Float[Array, "b k"], targets: Real[Array, " b"]
    ) -> dict[str, Float[Array, " b"]]:
        """Per-example quantities whose means describe a test set."""
        f = self.predictions(outputs)
        losses = {"loss": self.per_example(outputs, targets)}
        if self.name == "cross_entropy":
            hits = jnp.argmax(f, axis=-1).astype(targets.dtype) == targets
            return losses | {"accuracy": hits.astype(jnp.float32)}
        return losses | {"mse": jnp.square(f - targets), "mae": jnp.abs(f - targets)}


def likelihood_loss(
    outputs: Float[Array, "b k"], evidence: Float[Array, "b k"]
) -> Float[Array, " b"]:
    """−ln Σ_c softmax(outputs)_c·L_c: of what was seen instead of a class c with probability L_c.

    ``evidence`` are the ln L_c.
    """
    return -jax.nn.logsumexp(jax.nn.log_softmax(outputs, axis=-1) + evidence, axis=-1)


def build_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    """The optimizer for a run of ``steps`` steps; its learning rate may decay to 0 over them."""
    rate: Any = config.learning_rate
    if config.schedule == "cosine":
        rate = optax.cosine_decay_schedule(config.learning_rate, steps)
    makers = {
        "sgd": lambda: optax.sgd(rate),
        "momentum": lambda: optax.sgd(rate, momentum=config.momentum),
        "adam": lambda: optax.adam(rate),
        "rmsprop": lambda: optax.rmsprop(rate),
    }
    optimizer = makers[config.kind]()
    if config.l2 > 0:
        # In front of the optimizer: the gradient of ½·l2·‖w‖², not a decoupled decay.
        optimizer = optax.chain(optax.add_decayed_weights(config.l2, mask=_weights), optimizer)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        # optax mixes integers and floats; all other code here also runs under strict promotion.
        with jax.numpy_dtype_promotion("standard"):
            return optimizer.update(updates, state, params)

    return optax.GradientTransformation(optimizer.init, update)


def _weights(params: Any) -> Any:
    """True for weights and embeddings, False for biases and norms."""
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)
