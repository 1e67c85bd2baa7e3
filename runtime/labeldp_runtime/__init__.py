"""Runs compiled label randomizers; depends on numpy and onnxruntime only."""

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
from labeldp_runtime.keys import Key
from labeldp_runtime.policy import Policy

if TYPE_CHECKING:
    from labeldp_runtime.randomizer import Randomizer

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
    """The randomizer, loaded when it is used: keys and files need no library."""
    if name == "Randomizer":
        return import_module("labeldp_runtime.randomizer").Randomizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
