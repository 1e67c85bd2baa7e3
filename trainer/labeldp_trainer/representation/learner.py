"""Learns representations, each after those that it is made from, and maps rows to vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart, FeatureShape
from labeldp_trainer.one_release.plan import CLASSES
from labeldp_trainer.representation.representation import (
    ComposedKind,
    Representation,
    in_batches,
    inner_arrays,
    kind_named,
    own_arrays,
    width_of,
)
from labeldp_trainer.representations.graph import RowGraph
from labeldp_trainer.representations.joined import Joined
from labeldp_trainer.representations.kind import (
    ENDS,
    NOTHING_LEFT,
    Arrays,
    FeatureSource,
    Kind,
    PrincipalKind,
    Steps,
    fitted,
    moments,
    projected,
    silent,
)

_projected = jax.jit(projected)
_KEPT_BYTES = 1 << 30  # raw vectors that are kept between the two looks at them
_WORD = "representation"
_OF_GRAPHS = 0.9
"""Share of the signal that a graph is expected to have beside other vectors.

Fixed on the last 10,000 training rows of MNIST and Fashion-MNIST, after learning from the first
8,000: with equal shares, patches and graph together are worse than the graph at ε = 0.2.
"""
_POWER = CLASSES.power


def vectors_of_part(
    representation: Representation, part: DataPart, steps: Steps = silent
) -> NDArray[np.float32]:
    """[n, width] the vectors of further rows, in batches."""
    kind = kind_named(representation.kind)
    return _vectors(kind, representation.arrays, part, steps, {})


def _vectors(
    kind: ComposedKind,
    arrays: Arrays,
    part: DataPart,
    steps: Steps,
    done: dict[str, NDArray[np.float32]],
) -> NDArray[np.float32]:
    """The vectors of a kind with its arrays; equal kinds are computed once."""
    key = _digest(arrays)
    if key not in done:
        own = part
        if kind.of:
            inner = [
                _vectors(each, inner_arrays(arrays, number), part, steps, done)
                for number, each in enumerate(kind.of)
            ]
            own = replace(part, features=np.concatenate(inner, axis=1), bytes_=False)
        done[key] = _RawVectors(kind.kind, own_arrays(arrays), steps, room=0).projected(arrays, own)
    return done[key]


def _digest(arrays: Arrays) -> str:
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape};".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


class LearnedParts(NamedTuple):
    """A representation and its vectors of each part."""

    arrays: dict[str, NDArray[Any]]
    vectors: list[NDArray[np.float32]]
    raw_width: int
    notes: tuple[str, ...]


class PartsLearner:
    """Learns a representation after those that it is made from; each only once."""

    def __init__(
        self,
        loaded: LoadedConfig,
        parts: Sequence[DataPart],
        known: Sequence[DataPart],
        seed: int,
        steps: Steps,
    ) -> None:
        """``known`` are those of all ``parts`` from which to learn."""
        self._loaded, self._parts, self._seed, self._steps = loaded, parts, seed, steps
        self._known = [any(part is one for one in known) for part in parts]
        self._done: dict[str, LearnedParts] = {}

    def learnt(self, config: Kind, shape: FeatureShape) -> LearnedParts:
        """From features of this shape. Raises InputError."""
        key = config.model_dump_json()
        if key not in self._done:
            inner = [self.learnt(one, shape) for one in config.members]
            made = self._joined if isinstance(config, Joined) else self._learnt
            self._done[key] = made(config, shape, inner)
        return self._done[key]

    def _learnt(
        self, config: Kind, shape: FeatureShape, inner: Sequence[LearnedParts]
    ) -> LearnedParts:
        assert isinstance(config, PrincipalKind)
        parts, arrays = self._parts, dict[str, Any]()
        notes: tuple[str, ...] = ()
        spectrum, groups = None, None
        if inner:
            beside = _beside(inner, [1.0] * len(inner))
            parts = [
                replace(part, features=vectors, bytes_=False)
                for part, vectors in zip(parts, beside.vectors, strict=True)
            ]
            shape = FeatureShape(numeric=beside.vectors[0].shape[1])
            arrays, notes = _inside(inner), beside.notes
            spectrum, groups = beside.arrays["spectrum"], beside.arrays["groups"]
        known = [part for part, used in zip(parts, self._known, strict=True) if used]
        seed = getattr(config, "seed", None)
        source = FeatureSource(
            self._loaded,
            config,
            shape,
            known,
            self._seed if seed is None else seed,
            self._steps,
            spectrum,
            groups,
        )
        learnt = config.learn(source)
        raw = _RawVectors(type(config), learnt.arrays, self._steps, room=_KEPT_BYTES)
        found = moments(batch for part in known for batch in raw.batches(part))
        ends = fitted(found, config.components, whiten=config.whiten)
        source.require(ends is not None, NOTHING_LEFT)
        assert ends is not None
        vectors = [raw.projected(ends, part) for part in parts]
        whole = {**arrays, **learnt.arrays, **ends}
        return LearnedParts(whole, vectors, len(found.mean), (*notes, *learnt.notes))

    def _joined(
        self, config: Kind, shape: FeatureShape, inner: Sequence[LearnedParts]
    ) -> LearnedParts:
        del shape
        graphs = [isinstance(one, RowGraph) for one in config.members]
        each = [_OF_GRAPHS if graph else 1 - _OF_GRAPHS for graph in graphs]
        found = _beside(inner, [own / graphs.count(g) for own, g in zip(each, graphs, strict=True)])
        width = len(found.arrays["spectrum"])
        ends = {
            "columns": np.arange(width, dtype=np.int32),
            "mean": np.zeros(width, np.float32),
            "deviation": np.ones(width, np.float32),
        }
        return found._replace(arrays={**_inside(inner), **found.arrays, **ends})


def _beside(inner: Sequence[LearnedParts], shares: Sequence[float]) -> LearnedParts:
    """Vectors side by side, with spectra that make the expected signals proportional to shares.

    Coefficients are expected to have variances proportional to a power of the spectrum.
    """
    widths = [each.vectors[0].shape[1] for each in inner]
    spectra = []
    for each, share in zip(inner, shares, strict=True):
        spectrum = each.arrays["spectrum"] / each.arrays["spectrum"].max()
        whole = float((spectrum**_POWER).sum())
        spectra.append(spectrum * (share / whole) ** (1 / _POWER))
    arrays = {
        "spectrum": np.concatenate(spectra),
        "groups": np.repeat(np.arange(len(widths), dtype=np.int32), widths),
    }
    vectors = [np.concatenate(own, axis=1) for own in zip(*(f.vectors for f in inner), strict=True)]
    notes = tuple(dict.fromkeys(note for each in inner for note in each.notes))
    return LearnedParts(arrays, vectors, sum(each.raw_width for each in inner), notes)


def _inside(inner: Sequence[LearnedParts]) -> dict[str, NDArray[Any]]:
    """Their arrays, under the number of each."""
    return {
        f"{number}.{name}": array
        for number, each in enumerate(inner)
        for name, array in each.arrays.items()
    }


class _RawVectors:
    """Raw vectors of parts in batches; those of a first look are kept, if there is room."""

    def __init__(self, kind: type[Kind], arrays: Arrays, steps: Steps, *, room: int) -> None:
        self._kind, self._arrays, self._steps = kind, arrays, steps
        self._left = room
        self._kept: dict[int, list[NDArray[np.float32]]] = {}

    def batches(self, part: DataPart) -> Iterator[NDArray[np.float32]]:
        """Batches [b, raw width] of a part, in order; what was kept is let go of."""
        if kept := self._kept.pop(id(part), []):
            while kept:
                yield kept.pop()
            return
        done, chunk = 0, self._kind.chunk
        for batch in in_batches(self._kind.raw, self._arrays, part.features, part.rows, chunk):
            done += len(batch)
            self._steps(_WORD, done, part.rows)
            self._left -= batch.nbytes
            if self._left >= 0:
                kept.append(batch)
            else:
                kept.clear()
            yield batch
        if kept:
            self._kept[id(part)] = kept[::-1]

    def projected(self, arrays: Arrays, part: DataPart) -> NDArray[np.float32]:
        """[n, width] the vectors of a part; ``arrays`` have the numbers of the last step."""
        found = np.empty((part.rows, width_of(arrays)), np.float32)
        done = 0
        placed = jax.device_put({name: arrays[name] for name in ENDS & set(arrays)})
        for raw in self.batches(part):
            found[done : done + len(raw)] = _projected(raw, placed)
            done += len(raw)
        return found
