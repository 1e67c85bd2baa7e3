"""Models: frozen dataclasses with ``init(key)`` and ``apply(params, x, key)``."""

from labeldp_trainer.models.build import Scaled, build_model, count_parameters
from labeldp_trainer.models.cnn import CifarCnn, MnistCnn
from labeldp_trainer.models.dense import Linear, Mlp
from labeldp_trainer.models.model import Model, Params
from labeldp_trainer.models.resnet import ResNet18

__all__ = [
    "CifarCnn",
    "Linear",
    "Mlp",
    "MnistCnn",
    "Model",
    "Params",
    "ResNet18",
    "Scaled",
    "build_model",
    "count_parameters",
]
