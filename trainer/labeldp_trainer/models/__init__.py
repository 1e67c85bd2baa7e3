"""Models: frozen dataclasses with ``init(key)`` and ``apply(params, x, key)``."""

from labeldp_trainer.models.build import (
    Clamped,
    LogLink,
    Scaled,
    build_model,
    count_parameters,
    fresh_params,
)
from labeldp_trainer.models.cnn import CifarCnn, MnistCnn, ResNet18
from labeldp_trainer.models.dense import Linear, Mlp, Model, Params

__all__ = [
    "CifarCnn",
    "Clamped",
    "Linear",
    "LogLink",
    "Mlp",
    "MnistCnn",
    "Model",
    "Params",
    "ResNet18",
    "Scaled",
    "build_model",
    "count_parameters",
    "fresh_params",
]
