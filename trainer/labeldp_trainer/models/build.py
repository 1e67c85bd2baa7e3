"""Builds the model that the part ``model`` of a config describes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, PRNGKeyArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.model import (
    CnnConfig,
    InteractionsConfig,
    LinearConfig,
    MlpConfig,
    NetworkConfig,
)
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.losses import POISSON_FLOOR
from labeldp_trainer.models.cnn import ResNet18, cifar_cnn, mnist_cnn
from labeldp_trainer.models.dense import Linear, Mlp, Model, Params
from labeldp_trainer.models.interactions import Interactions
from labeldp_trainer.models.layers import clip, softplus_of_log

Outputs = Float[Any, "b k"]
_LARGEST_LOG = 30.0
_KNOWN: dict[Model, Model] = {}
_LEAST_SIDE = {"mnist": 4, "cifar": 8}  # pixels, so that at least one is left after pooling


@dataclass(frozen=True)
class _Around:
    """A model whose outputs are transformed."""

    model: Model

    def init(self, key: PRNGKeyArray) -> Params:
        """Those of the inner model."""
        return self.model.init(key)


@dataclass(frozen=True)
class Scaled(_Around):
    """offset + scale · model: public constants that bring outputs to the size of labels."""

    scale: float
    offset: float

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """Those of the inner model, scaled and moved."""
        return self.offset + self.scale * self.model.apply(params, x, key)


@dataclass(frozen=True)
class Clamped(_Around):
    """A model whose outputs are clamped to a range, which is part of its parameters."""

    def init(self, key: PRNGKeyArray) -> Params:
        """Those of the inner model, and two infinite ends."""
        return {"model": self.model.init(key), "ends": jnp.array([-jnp.inf, jnp.inf])}

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """Those of the inner model, between the two ends."""
        low, high = params["ends"][0], params["ends"][1]
        return clip(self.model.apply(params["model"], x, key), low, high)


@dataclass(frozen=True)
class LogLink(_Around):
    """A model that predicts exp(model). ``Loss.predictions`` takes the softplus of outputs, so
    these are the softplus⁻¹ of the prediction.
    """

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """softplus⁻¹(exp(model) − floor)."""
        o = clip(self.model.apply(params, x, key), -_LARGEST_LOG, _LARGEST_LOG)
        return softplus_of_log(o, POISSON_FLOOR)


def build_model(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    """The model that a config asks for. Raises ConfigError if it does not fit the data.

    Equal models are one object: what was compiled for it once is not compiled again.
    """
    model = _built(loaded, shape, outputs)
    return _KNOWN.setdefault(model, model)


def _built(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    config = loaded.config.model
    if loaded.config.interactions is not None:
        return Interactions(loaded.config.loss, shape, outputs)
    if config is None and loaded.config.closed_form:
        return closed_form_model(loaded.config.loss, shape, outputs)
    if config is None:
        raise loaded.error(
            ("model",), "this key is missing (Python code may pass a model to train instead)"
        )
    assert not isinstance(config, InteractionsConfig)  # ``interactions`` is not None with it
    model = _build(loaded, config, shape, outputs)
    if config.scale != 1 or config.offset != 0:
        return Scaled(model, config.scale, config.offset)
    return model


def fresh_params(loaded: LoadedConfig, model: Model, number: int = 0) -> Params:
    """The parameters that training starts from, with a key of the config's seed."""
    key = jax.random.key(loaded.config.training.seed)
    return _fresh(model.init, jax.random.fold_in(key, number))


@partial(jax.jit, static_argnums=0)
def _fresh(init: Callable[[PRNGKeyArray], Params], key: PRNGKeyArray) -> Params:
    return init(key)


def closed_form_model(loss: str, shape: FeatureShape, outputs: int) -> Clamped | LogLink | Linear:
    """The model whose parameters are computed from sums over all rows, without steps."""
    linear = Linear(shape, outputs)
    if loss == "cross_entropy":
        return linear
    return LogLink(linear) if loss == "poisson" else Clamped(linear)


def _build(loaded: LoadedConfig, config: NetworkConfig, shape: FeatureShape, outputs: int) -> Model:
    if isinstance(config, LinearConfig):
        return Linear(shape, outputs)
    if isinstance(config, MlpConfig):
        return Mlp(shape, outputs, tuple(config.hidden), config.embedding)
    if shape.image is None:
        raise loaded.error(("model", "kind"), f"{config.kind} needs images; use mlp or linear")
    if isinstance(config, CnnConfig):
        least = _LEAST_SIDE[config.variant]
        if min(shape.image[:2]) < least:
            reason = f"needs images of at least {least} × {least} pixels"
            raise loaded.error(("model", "variant"), f"{config.variant} {reason}")
        return (mnist_cnn if config.variant == "mnist" else cifar_cnn)(shape, outputs)
    if config.width % config.groups:
        raise loaded.error(("model", "groups"), f"must divide the width {config.width}")
    return ResNet18(shape, outputs, config.width, config.groups)


def count_parameters(params: Params) -> int:
    """How many numbers a pytree of parameters has."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
