"""What a kind of representation is: how it learns from features, and what it makes of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import AnyRepresentation
from labeldp_trainer.data import DataPart, FeatureShape

Arrays = Mapping[str, NDArray[Any]]
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
