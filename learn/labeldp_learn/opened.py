"""The artifact of an estimator or a loss: opened and verified once, from a path or as it is."""

import hashlib
from functools import lru_cache
from os import PathLike
from pathlib import Path

from labeldp_verify import read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.opening import open_artifact

from labeldp_learn.errors import PrivateLabelError

Source = Artifact | str | PathLike[str]
_KEPT = 8  # artifacts of which a grid search opens none twice


def opened(source: Source) -> Artifact:
    """The artifact of a path, verified, or an Artifact as it is.

    Raises InputError if the file cannot be read, and VerificationError if a check fails.
    """
    if isinstance(source, Artifact):
        return source
    if not isinstance(source, str | PathLike):
        raise PrivateLabelError(f"artifact is a path or an Artifact, not {type(source).__name__}")
    path = Path(source)
    return _verified(path, hashlib.sha256(read_artifact(path)).hexdigest())


@lru_cache(maxsize=_KEPT)
def _verified(path: Path, digest: str) -> Artifact:
    """``digest`` tells apart files that had the same path."""
    found = open_artifact(path)
    if found.sha256 and found.sha256 != digest:
        raise PrivateLabelError(f"{path}: was replaced while it was read")
    return found
