"""Trains JAX models on labels under label differential privacy."""

from labeldp_trainer.config import LoadedConfig, load_config, parse_config
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.errors import (
    ArtifactError,
    ConfigError,
    DataError,
    DivergedError,
    RunFolderError,
    TrainerError,
)
from labeldp_trainer.models import Model
from labeldp_trainer.run import load_params
from labeldp_trainer.train import Result, train

__all__ = [
    "ArtifactError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "FeatureShape",
    "LoadedConfig",
    "Model",
    "Result",
    "RunFolderError",
    "TrainerError",
    "load_config",
    "load_params",
    "parse_config",
    "train",
]
