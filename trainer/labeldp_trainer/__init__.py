"""Trains JAX models on labels under label differential privacy."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_trainer.config import LoadedConfig, load_config, parse_config
    from labeldp_trainer.data import FeatureShape
    from labeldp_trainer.errors import (
        ArtifactError,
        ConfigError,
        DataError,
        DivergedError,
        InputError,
        RunFolderError,
        TrainerError,
    )
    from labeldp_trainer.models import Model
    from labeldp_trainer.run.checkpoints import load_params
    from labeldp_trainer.training import Result, train

# Loaded when asked for: JAX takes seconds, which help and a wrong config should not cost.
_HOMES = {
    "ArtifactError": "errors",
    "ConfigError": "errors",
    "DataError": "errors",
    "DivergedError": "errors",
    "FeatureShape": "data",
    "InputError": "errors",
    "LoadedConfig": "config",
    "Model": "models",
    "Result": "training",
    "RunFolderError": "errors",
    "TrainerError": "errors",
    "load_config": "config",
    "load_params": "run.checkpoints",
    "parse_config": "config",
    "train": "training",
}

__all__ = [
    "ArtifactError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "FeatureShape",
    "InputError",
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


def __getattr__(name: str) -> object:
    """Load what is exported (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
