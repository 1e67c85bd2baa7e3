"""optax optimizers from a config."""

from __future__ import annotations

from typing import Any

import jax
import optax

from labeldp_trainer.config.model import OptimizerConfig


def build_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    """The optimizer for a run of so many steps; its learning rate may decay to 0 over them."""
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
