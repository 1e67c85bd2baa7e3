"""Runs compiled label randomizers; depends on numpy and onnxruntime only."""

from labeldp_runtime.errors import (
    ArtifactError,
    InsecureArtifactError,
    LabelError,
    PlatformError,
    RuntimeArtifactError,
    UnsupportedFormatError,
)
from labeldp_runtime.randomizer import Randomizer

__all__ = [
    "ArtifactError",
    "InsecureArtifactError",
    "LabelError",
    "PlatformError",
    "Randomizer",
    "RuntimeArtifactError",
    "UnsupportedFormatError",
]
