"""Runs compiled label randomizers; depends on numpy and onnxruntime only."""

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
    UnsupportedFormatError,
)
from labeldp_runtime.keys import Key
from labeldp_runtime.policy import Policy
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
    "UnsupportedFormatError",
]
