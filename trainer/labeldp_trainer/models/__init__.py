"""Models: frozen dataclasses with ``init(key)`` and ``apply(params, x, key)``."""

from labeldp_trainer.models.build import (
    Clamped,
    LogLink,
    Scaled,
    build_model,
    count_parameters,
    fresh_params,
)
from labeldp_trainer.models.cnn import ResNet18, cifar_cnn, mnist_cnn
from labeldp_trainer.models.dense import Linear, Mlp, Model, Params
from labeldp_trainer.models.interactions import Interactions

__all__ = [
    "Clamped",
    "Interactions",
    "Linear",
    "LogLink",
    "Mlp",
    "Model",
    "Params",
    "ResNet18",
    "Scaled",
    "build_model",
    "cifar_cnn",
    "count_parameters",
    "fresh_params",
    "mnist_cnn",
]
