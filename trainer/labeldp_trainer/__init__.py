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
    from labeldp_trainer.outcomes.coefficients import RunCoefficients, read_coefficients
    from labeldp_trainer.run.checkpoints import load_params
    from labeldp_trainer.training import Result, train

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
    "RunCoefficients",
    "RunFolderError",
    "TrainerError",
    "load_config",
    "load_params",
    "parse_config",
    "read_coefficients",
    "train",
]
# Loaded when asked for: JAX takes seconds, which help and a wrong config should not cost.
_HOMES = {
    "config": ("LoadedConfig", "load_config", "parse_config"),
    "data": ("FeatureShape",),
    "models": ("Model",),
    "outcomes.coefficients": ("RunCoefficients", "read_coefficients"),
    "run.checkpoints": ("load_params",),
    "training": ("Result", "train"),
}


def __getattr__(name: str) -> object:
    """Load what is exported (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "errors")
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
