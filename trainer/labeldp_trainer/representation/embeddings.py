"""Vectors that the user has: they are read, and nothing but principal components is learnt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config.representation import MOST_COLUMNS
from labeldp_trainer.data.arrays import read_npz
from labeldp_trainer.errors import DataError
from labeldp_trainer.representation.kind import FeatureSource, Kind, Learnt


def read_embeddings(
    path: Path, array: str, rows: int | None = None, taken: int | None = None
) -> NDArray[np.float32]:
    """[rows, d] the rows of an archive, or the first ``taken`` ones; any number if it is None.

    Raises DataError.
    """
    found = read_npz(path, [array])[array]
    fits = found.ndim == 2 and found.dtype.kind in "buif"
    if not fits or rows not in (None, len(found[:taken])):
        raise DataError(
            f"{path}: {array!r} has shape {list(found.shape)}: expected numbers "
            f"[{'n' if rows is None else rows}, d], a row for each row of the data"
        )
    if not 1 <= found.shape[1] <= MOST_COLUMNS:
        raise DataError(f"{path}: {array!r} has {found.shape[1]:,} columns, not 1 … {MOST_COLUMNS}")
    with np.errstate(over="ignore"):
        vectors: NDArray[np.float32] = found[:taken].astype(np.float32)
    if not np.isfinite(vectors).all():
        raise DataError(f"{path}: some of {array!r} are NaN, infinite or beyond float32")
    return vectors


def _learn(source: FeatureSource) -> Learnt:
    del source
    return Learnt({})


def _raw(x: Any, arrays: Mapping[str, jax.Array]) -> Float32[jax.Array, "b w"]:
    """The embeddings themselves take the place of features."""
    del arrays
    return x  # type: ignore[no-any-return]


FROM_FILE = Kind(_learn, _raw, chunk=1024)
