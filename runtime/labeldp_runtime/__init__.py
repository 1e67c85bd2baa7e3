"""Runs compiled label randomizers; depends on numpy and onnxruntime only."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp_runtime.errors import (
    ArtifactError,
    ArtifactTooLargeError,
    DamagedArtifactError,
    DuplicateIdError,
    EngineError,
    GroupError,
    IdError,
    InsecureArtifactError,
    KeyFileError,
    LabelError,
    MissingExtraError,
    PlatformError,
    PolicyError,
    ReplayWarning,
    RuntimeArtifactError,
    UnpreparedRowsError,
    UnsupportedFormatError,
)

if TYPE_CHECKING:
    from labeldp_runtime.keys import Key
    from labeldp_runtime.policy import Policy
    from labeldp_runtime.randomizer import Randomizer

# Or onnxruntime, from 1.29 on and on Linux, sends names and hashes of models to its makers. It
# looks only when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "ArtifactError",
    "ArtifactTooLargeError",
    "DamagedArtifactError",
    "DuplicateIdError",
    "EngineError",
    "GroupError",
    "IdError",
    "InsecureArtifactError",
    "Key",
    "KeyFileError",
    "LabelError",
    "MissingExtraError",
    "PlatformError",
    "Policy",
    "PolicyError",
    "Randomizer",
    "ReplayWarning",
    "RuntimeArtifactError",
    "UnpreparedRowsError",
    "UnsupportedFormatError",
]


def __getattr__(name: str) -> Any:
    """The classes, each loaded when it is used: files and keys need no library."""
    homes = {"Key": "keys", "Policy": "policy", "Randomizer": "randomizer"}
    if name in homes:
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
