"""A representation: a map of features alone, learned without labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.data import Features, FeatureShape
from labeldp_trainer.data.dataset import batches
from labeldp_trainer.representation.components import projected
from labeldp_trainer.representation.fourier import RANDOM_FOURIER
from labeldp_trainer.representation.kind import Arrays, FeatureSource, Kind, Learnt
from labeldp_trainer.representation.patches import PATCHES
from labeldp_trainer.representation.tables import PCA, SPLINES


def _nothing_learnt(source: FeatureSource) -> Learnt:
    del source
    return Learnt({})


def _embeddings(x: Any, arrays: Mapping[str, jax.Array]) -> Float32[jax.Array, "b w"]:
    """They take the place of features: only principal components are learned."""
    del arrays
    return x  # type: ignore[no-any-return]


KINDS: Mapping[str, Kind] = {
    "patches": PATCHES,
    "pca": PCA,
    "splines": SPLINES,
    "random_fourier": RANDOM_FOURIER,
    "file": Kind(_nothing_learnt, _embeddings, chunk=1024),
}
Raw = Callable[[Any, Mapping[str, jax.Array]], jax.Array]
_AT_ONCE = 1024  # examples for which a device is called once


@dataclass(frozen=True)
class Representation:
    """A map of features to vectors that no label has entered.

    Attributes:
        kind: as in the config.
        shape: of the features that it takes; of kind ``file`` they are the embeddings.
        arrays: everything that was learned.
        facts: what it was learned from, and how: what ``run.json`` says.
        notes: sentences for the user.
        stored: the folder where it and its vectors are, if they are on the disk.
    """

    kind: str
    shape: FeatureShape
    arrays: Arrays
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stored: Path | None = None

    @property
    def width(self) -> int:
        """Columns of a vector."""
        return int(self.arrays["projection"].shape[1] if self._turned else len(self.arrays["mean"]))

    @property
    def spectrum(self) -> NDArray[np.float64] | None:
        """[width] eigenvalues of the components that columns are, decreasing, before whitening.

        None if the columns are no components.
        """
        return self.arrays["spectrum"] if self._turned else None

    @property
    def _turned(self) -> bool:
        return "projection" in self.arrays

    def apply(self, features: Features) -> Float32[Any, "b width"]:
        """The vectors of a batch: images, flat arrays, or {"numeric", "categorical"}. Pure JAX."""
        return self.vectors(features, jnp.asarray)

    def vectors(self, features: Any, placed: Callable[[NDArray[Any]], Any]) -> Any:
        """The same of features and arrays of any kind that ``models.layers`` knows."""
        arrays = {name: placed(array) for name, array in _floats(self.arrays).items()}
        return projected(KINDS[self.kind].raw(features, arrays), arrays)


def in_batches(
    function: Raw,
    arrays: Arrays,
    features: Features,
    rows: int,
    chunk: int,
) -> Iterator[NDArray[np.float32]]:
    """What ``function`` makes of all rows, in order, a batch after another; the last is shorter.

    A CPU computes ``chunk`` examples at a time, so that what lies between stays in its cache.
    """
    at_once = min(_AT_ONCE, -(-rows // chunk) * chunk)
    if jax.default_backend() != "cpu":
        chunk = at_once

    placed = jax.device_put(dict(_floats(arrays)))
    for batch, count in batches(features, rows, at_once):
        yield np.asarray(_mapped(function, chunk, placed, batch))[:count]


@partial(jax.jit, static_argnums=(0, 1))
def _mapped(function: Raw, chunk: int, arrays: Mapping[str, jax.Array], x: Any) -> jax.Array:
    def in_chunks(leaf: jax.Array) -> jax.Array:  # there may be no columns
        return leaf.reshape(leaf.shape[0] // chunk, chunk, *leaf.shape[1:])

    split = jax.tree.map(in_chunks, x)
    found = lax.map(lambda part: function(part, arrays), split)
    whole: jax.Array = found.reshape(-1, found.shape[-1])
    return whole


def _floats(arrays: Arrays) -> Arrays:
    """Without the spectrum, which is float64 and no part of the map."""
    return {name: array for name, array in arrays.items() if name != "spectrum"}
