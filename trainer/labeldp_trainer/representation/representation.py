"""A representation: a map of features alone, learned without labels."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config.representation import AnyRepresentation, members
from labeldp_trainer.data import Features, FeatureShape
from labeldp_trainer.data.features import batches
from labeldp_trainer.models.operators import joined
from labeldp_trainer.representation.graph import GRAPH
from labeldp_trainer.representation.kind import Arrays, FeatureSource, Kind, Learnt, projected
from labeldp_trainer.representation.patches import PATCHES
from labeldp_trainer.representation.scattering import SCATTERING
from labeldp_trainer.representation.tables import PCA, RANDOM_FOURIER, SPLINES


def _nothing_learnt(source: FeatureSource) -> Learnt:
    del source
    return Learnt({})


def _embeddings(x: Any, arrays: Mapping[str, jax.Array]) -> Float32[jax.Array, "b w"]:
    """They take the place of features: nothing is learned but how columns are scaled."""
    del arrays
    return x  # type: ignore[no-any-return]


KINDS: Mapping[str, Kind] = {
    "patches": PATCHES,
    "scattering": SCATTERING,
    "pca": PCA,
    "splines": SPLINES,
    "random_fourier": RANDOM_FOURIER,
    "file": Kind(_nothing_learnt, _embeddings, chunk=1024),
    "graph": GRAPH,
    "joined": Kind(_nothing_learnt, _embeddings, chunk=1024),
}
_NAME = re.compile(r"[a-z_]+|[(),]")
Raw = Callable[[Any, Mapping[str, jax.Array]], jax.Array]
_AT_ONCE = 1024  # examples for which a device is called once


@dataclass(frozen=True)
class Representation:
    """A map of features to vectors that no label has entered.

    Attributes:
        kind: as in the config, with the kinds that it is made from in brackets: ``graph(patches)``.
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
        return width_of(self.arrays)

    @property
    def spectrum(self) -> NDArray[np.float64] | None:
        """[width] eigenvalues of the components that columns are, decreasing, before whitening.

        None if the columns are no components. Of a joined one, those of each group are decreasing.
        """
        return self.arrays.get("spectrum")

    @property
    def groups(self) -> NDArray[np.int32] | None:
        """[width] the number of the representation that a column is from, if several are joined."""
        return self.arrays.get("groups")

    def apply(self, features: Features) -> Float32[Any, "b width"]:
        """The vectors of a batch: images, flat arrays, or {"numeric", "categorical"}. Pure JAX."""
        return self.vectors(features, jnp.asarray)

    def vectors(self, features: Any, placed: Callable[[NDArray[Any]], Any]) -> Any:
        """The same of features and arrays of any kind that ``models.layers`` knows."""
        arrays = {name: placed(array) for name, array in of_the_map(self.arrays).items()}
        return _composed(kind_named(self.kind), features, arrays)


def kind_name(config: AnyRepresentation) -> str:
    """Its kind, with those that it is made from."""
    inner = ",".join(map(kind_name, members(config)))
    return f"{config.kind}({inner})" if inner else config.kind


def kind_named(name: str) -> Kind:
    """The kind of such a name. Raises ValueError for other texts."""
    tokens = _NAME.findall(name)
    if "".join(tokens) != name:
        raise ValueError("no name of a kind")
    kind, rest = _read_kind(tokens)
    if rest:
        raise ValueError("no name of a kind")
    return kind


def _read_kind(tokens: Sequence[str]) -> tuple[Kind, Sequence[str]]:
    if not tokens or tokens[0] not in KINDS:
        raise ValueError("an unknown kind")
    kind, rest = KINDS[tokens[0]], tokens[1:]
    inner: list[Kind] = []
    while rest and rest[0] == ("," if inner else "("):
        found, rest = _read_kind(rest[1:])
        inner.append(found)
    if inner and rest[:1] != [")"]:
        raise ValueError("a bracket is missing")
    return replace(kind, of=tuple(inner)), rest[1:] if inner else rest


def own_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Without those of the representations that it is made from."""
    return {name: array for name, array in arrays.items() if "." not in name}


def inner_arrays(arrays: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Those of a representation that it is made from."""
    start = f"{number}."
    return {n[len(start) :]: array for n, array in arrays.items() if n.startswith(start)}


def width_of(arrays: Arrays) -> int:
    """Columns of the vectors of a representation with these arrays."""
    return int(arrays["projection"].shape[1] if "projection" in arrays else len(arrays["mean"]))


def _composed(kind: Kind, features: Any, arrays: Mapping[str, Any]) -> Any:
    """The vectors of all kinds, from the innermost to the outermost."""
    if kind.of:
        features = joined(
            *(_composed(k, features, inner_arrays(arrays, i)) for i, k in enumerate(kind.of))
        )
    return projected(kind.raw(features, arrays), arrays)


def in_batches(
    function: Raw, arrays: Arrays, features: Features, rows: int, chunk: int
) -> Iterator[NDArray[np.float32]]:
    """What ``function`` makes of all rows, in order, a batch after another; the last is shorter.

    A CPU computes ``chunk`` examples at a time, so that what lies between stays in its cache.
    """
    at_once = min(_AT_ONCE, -(-rows // chunk) * chunk)
    if jax.default_backend() != "cpu":
        chunk = at_once

    placed = jax.device_put(dict(of_the_map(arrays)))
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


def of_the_map(arrays: Arrays) -> Arrays:
    """Without what only describes the columns."""
    described = {"spectrum", "groups"}
    return {n: array for n, array in arrays.items() if n.rpartition(".")[2] not in described}
