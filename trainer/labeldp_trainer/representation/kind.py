"""A kind of representation, and the principal components that every representation ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray
from scipy.linalg import blas, eigh

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import DEFAULT_COMPONENTS, AnyRepresentation
from labeldp_trainer.data import DataPart, FeatureShape
from labeldp_trainer.models.operators import matmul

# The end of every representation: principal components, whitened, largest variance first.

Floats = NDArray[np.float64]
ENDS = frozenset({"mean", "projection", "columns", "deviation"})
"""Arrays of ``projected``."""
_ROWS = 4096
_LEAST = 1e-7  # of the largest eigenvalue: what is below is rounding


@dataclass(frozen=True)
class VectorMoments:
    """Mean [w] and covariance [w, w] of n rows, in float64; only its upper half is filled."""

    rows: int
    mean: Floats
    covariance: Floats


def moments(batches: Iterable[NDArray[np.float32]]) -> VectorMoments:
    """Those of all rows of batches [b, w], one after another."""
    rows = 0
    for block in _blocks(batches):
        if not rows:
            shift: Floats = block[0].astype(np.float64)  # near the mean: nothing cancels
            total = np.zeros_like(shift)
            upper: Floats = np.zeros((len(shift), len(shift)), order="F")
        moved = block.astype(np.float64)
        moved -= shift[None, :]
        rows += len(block)
        total += moved.sum(axis=0)
        upper = blas.dsyrk(1.0, moved.T, beta=1.0, c=upper, overwrite_c=True)
    mean = total / rows
    upper /= rows
    upper -= np.outer(mean, mean)
    return VectorMoments(rows, shift + mean, upper)


def _blocks(batches: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """The same rows, more at a time: products of large matrices take less time a row."""
    waiting: list[NDArray[np.float32]] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def fitted(
    found: VectorMoments, components: int | Literal["all"] | None, *, whiten: bool
) -> dict[str, NDArray[Any]] | None:
    """What ``projected`` needs: mean, projection and spectrum; or columns, mean, deviation.

    None if every row is the same.
    """
    if components == "all" and not whiten:
        variances = np.diag(found.covariance)
        kept = np.flatnonzero(variances > _LEAST**2 * variances.max())
        return (
            {
                "columns": kept.astype(np.int32),
                "mean": found.mean[kept].astype(np.float32),
                "deviation": np.sqrt(variances[kept]).astype(np.float32),
            }
            if variances.max() > 0
            else None
        )
    width = len(found.mean)
    wanted = width if components == "all" else min(components or DEFAULT_COMPONENTS, width)
    values, directions = eigh(
        found.covariance,
        lower=False,
        subset_by_index=[width - wanted, width - 1],
        overwrite_a=True,
        check_finite=False,
    )
    values, directions = values[::-1], directions[:, ::-1]
    kept = np.flatnonzero(values > _LEAST * values[0])
    if values[0] <= 0 or not len(kept):
        return None
    values, directions = values[kept], directions[:, kept]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(len(kept))])[None, :]
    if whiten:
        directions = directions / np.sqrt(values)[None, :]
    return {
        "mean": found.mean.astype(np.float32),
        "projection": directions.astype(np.float32),
        "spectrum": values,
    }


def projected(raw: Float32[Any, "b w"], arrays: Mapping[str, Any]) -> Float32[Any, "b width"]:
    """The vectors of raw ones."""
    if "projection" not in arrays:
        centred = raw[:, arrays["columns"]] - arrays["mean"][None, :]
        return centred / arrays["deviation"][None, :]
    return matmul(raw - arrays["mean"][None, :], arrays["projection"])


# What a kind of representation is: how it learns from features, and what it makes of a batch.

Arrays = Mapping[str, NDArray[Any]]
SMALLEST = 8
"""Pixels of a side of images that wavelets take."""
NOTHING_LEFT = "every column of the representation is constant, so nothing is left"
Steps = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much."""

Announce = Callable[[str], None]
"""Called with a sentence for the user before long work."""


def silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def nowhere(words: str) -> None:
    """Nothing is announced."""


@dataclass(frozen=True)
class FeatureSource:
    """What a representation is learned from: features alone.

    Attributes:
        loaded: the config.
        config: the representation to learn, which may be a part of that of ``loaded``.
        shape: of an example.
        parts: the training part, and all other parts that may be read.
        seed: of what is drawn.
        steps: progress.
        spectrum: [p] eigenvalues of the components that columns are, if they are vectors of another
            representation.
        groups: [p] the numbers of the representations that columns are from, or None.
    """

    loaded: LoadedConfig
    config: AnyRepresentation
    shape: FeatureShape
    parts: Sequence[DataPart]
    seed: int
    steps: Steps = silent
    spectrum: NDArray[np.float64] | None = None
    groups: NDArray[np.int32] | None = None

    def require(self, holds: bool, reason: str, *key: str) -> None:
        """Raise ConfigError, which names this key of ``representation``, unless it holds."""
        if not holds:
            raise self.loaded.error(("representation", *key), reason)

    @property
    def features(self) -> list[Any]:
        """Those of each part, [n, …]."""
        return [part.features for part in self.parts]


@dataclass(frozen=True)
class Learnt:
    """What a kind has learned before principal components.

    Attributes:
        arrays: by name; shapes are all that ``Kind.raw`` knows beside them.
        notes: sentences for the user.
    """

    arrays: Arrays
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Kind:
    """One kind of representation.

    Attributes:
        learn: from features. Raises InputError.
        raw: (batch of features, arrays) → [b, raw width]; pure, of operators and ``models.layers``.
        chunk: examples at a time whose intermediate values fit the cache of a CPU.
        of: if not empty, ``learn`` and ``raw`` take the vectors of these kinds side by side, not
            features.
    """

    learn: Callable[[FeatureSource], Learnt]
    raw: Callable[[Any, Mapping[str, Any]], Float32[Any, "b w"]]
    chunk: int
    of: tuple[Kind, ...] = ()
