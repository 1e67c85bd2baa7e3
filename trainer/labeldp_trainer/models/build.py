"""From the part ``model`` of a config to a model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
from jax import Array
from jaxtyping import Float, PRNGKeyArray, PyTree, Shaped

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.model import CnnConfig, LinearConfig, MlpConfig
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.cnn import CifarCnn, MnistCnn, ResNet18
from labeldp_trainer.models.dense import Linear, Mlp, Model, Params

_LEAST_SIDE = {"mnist": 4, "cifar": 8}  # pixels, so that something is left after pooling


@dataclass(frozen=True)
class Scaled:
    """offset + scale · model: public constants that bring outputs to the size of labels."""

    model: Model
    scale: float
    offset: float

    def init(self, key: PRNGKeyArray) -> Params:
        """Those of the inner model."""
        return self.model.init(key)

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Those of the inner model, scaled and moved."""
        return self.offset + self.scale * self.model.apply(params, x, key)


def build_model(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    """The model that a config asks for. Raises ConfigError if it does not fit the data."""
    config = loaded.config.model
    if config is None:
        raise loaded.error(("model",), "this key is missing (from Python, give train a model)")
    model = _build(loaded, shape, outputs)
    if config.scale == 1 and config.offset == 0:
        return model
    return Scaled(model, config.scale, config.offset)


def _build(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    config = loaded.config.model
    if isinstance(config, LinearConfig):
        return Linear(shape, outputs)
    if isinstance(config, MlpConfig):
        return Mlp(shape, outputs, tuple(config.hidden), config.embedding)
    assert config is not None
    if shape.image is None:
        raise loaded.error(("model", "kind"), f"{config.kind} needs images: use mlp or linear")
    if isinstance(config, CnnConfig):
        least = _LEAST_SIDE[config.variant]
        if min(shape.image[:2]) < least:
            reason = f"needs images of at least {least} × {least} pixels"
            raise loaded.error(("model", "variant"), f"{config.variant} {reason}")
        return (MnistCnn if config.variant == "mnist" else CifarCnn)(shape, outputs)
    if config.width % config.groups:
        raise loaded.error(("model", "groups"), f"must divide the width {config.width}")
    return ResNet18(shape, outputs, config.width, config.groups)


def count_parameters(params: Params) -> int:
    """Numbers in a pytree of parameters."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
