"""Learns representations, each after those that it is made from, and gives data its vectors.

Every representation ends with principal components, whitened, largest variance first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from labeldp_verify.printable import one_line
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import (
    DEFAULT_COMPONENTS,
    NOTHING_LEFT,
    TEST,
    Arrays,
    FeatureSource,
    Kind,
    PrincipalKind,
    Steps,
    given_vectors,
    silent,
)
from labeldp_trainer.data import DataPart, Dataset, FeatureShape, array_digest, load_unlabelled
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.data.encoders import ArrayEncoder
from labeldp_trainer.data.features import all_finite, batches, room
from labeldp_trainer.errors import DataError
from labeldp_trainer.one_release.plan import CLASSES
from labeldp_trainer.representations.composed import Joined, RowGraph
from labeldp_trainer.representations.representation import (
    AT_ONCE,
    ENDS,
    ComposedKind,
    Representation,
    digest_of,
    find,
    in_batches,
    inner_arrays,
    kind_name,
    kind_named,
    own_arrays,
    projected,
    width_of,
)

Floats = NDArray[np.float64]
_projected = jax.jit(projected)
_KEPT_BYTES = 1 << 30  # raw vectors that are kept between the two looks at them
_WORD = "representation"
_OF_GRAPHS = 0.9
"""Share of the signal that a graph is expected to have beside other vectors.

Fixed on the last 10,000 training rows of MNIST and Fashion-MNIST, after learning from the first
8,000: with equal shares, patches and graph together are worse than the graph at ε = 0.2.
"""
_POWER = CLASSES.power
_ROWS = 4096
_LEAST = 1e-7  # of the largest eigenvalue: what is below is rounding


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
        raw_moments = moments(batch for part in known for batch in raw.batches(part))
        if not config.centred:
            raw_moments = raw_moments.around_zero
        ends = fitted(raw_moments, config.components, whiten=config.whiten)
        source.require(ends is not None, NOTHING_LEFT)
        assert ends is not None
        vectors = [raw.projected(ends, part) for part in parts]
        whole = {**arrays, **learnt.arrays, **ends}
        return LearnedParts(whole, vectors, len(raw_moments.mean), (*notes, *learnt.notes))

    def _joined(
        self, config: Kind, shape: FeatureShape, inner: Sequence[LearnedParts]
    ) -> LearnedParts:
        del shape
        graphs = [isinstance(one, RowGraph) for one in config.members]
        each = [_OF_GRAPHS if graph else 1 - _OF_GRAPHS for graph in graphs]
        members = _beside(
            inner, [own / graphs.count(g) for own, g in zip(each, graphs, strict=True)]
        )
        width = len(members.arrays["spectrum"])
        ends = {
            "columns": np.arange(width, dtype=np.int32),
            "mean": np.zeros(width, np.float32),
            "deviation": np.ones(width, np.float32),
        }
        return members._replace(arrays={**_inside(inner), **members.arrays, **ends})


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
        vectors = room((part.rows, width_of(arrays)), np.float32, by_column=False)
        done = 0
        placed = jax.device_put({name: arrays[name] for name in ENDS & set(arrays)})
        for raw in self.batches(part):
            # of one shape, so that a row has the same bits in any batch of any part
            whole, _ = next(batches(raw, len(raw), AT_ONCE))
            vectors[done : done + len(raw)] = _projected(whole, placed)[: len(raw)]
            done += len(raw)
        return vectors


@dataclass(frozen=True)
class VectorMoments:
    """Mean [w] and covariance [w, w] of n rows, in float64; only its upper half is filled."""

    rows: int
    mean: Floats
    covariance: Floats

    @property
    def around_zero(self) -> VectorMoments:
        """Those of the rows and of their negatives."""
        second = self.covariance + np.outer(self.mean, self.mean)
        return VectorMoments(self.rows, np.zeros_like(self.mean), second)


def moments(batches: Iterable[NDArray[np.float32]]) -> VectorMoments:
    """Those of all rows of batches [b, w], one after another."""
    from scipy.linalg import blas  # noqa: PLC0415

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
    """The rows in larger batches: products of large matrices take less time a row."""
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
    """The arrays of ``projected``: mean, projection and spectrum; or columns, mean, deviation.

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
    from scipy.linalg import eigh  # noqa: PLC0415

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


def represented(
    loaded: LoadedConfig,
    dataset: Dataset,
    output: Path,
    steps: Steps = silent,
    learner: Callable[..., PartsLearner] | None = None,
) -> tuple[Dataset, Representation | None]:
    """The data with vectors [n, width] instead of features, and the map from one to other;
    the data alone if the config has no representation.

    Takes those of ``output``, or of a run folder of this user beside it, if they were learned from
    the same features with the same options. No label is looked at. ``learner`` makes a
    ``PartsLearner``: one that is given for several representations learns what they share once.
    Raises InputError.
    """
    if loaded.config.representation is None:
        return dataset, None
    inputs = _with_embeddings(loaded, dataset)
    wanted = getattr(loaded.config.representation, "unlabelled", ())
    more = {name: load_unlabelled(loaded, name, dataset) for name in wanted if name != TEST}
    facts = _facts(loaded, inputs, more, with_test=TEST in wanted)
    rows = dataset.train.rows, None if dataset.test is None else dataset.test.rows
    found = find(output, digest_of(facts), rows)
    if found is None:
        parts = [*inputs.parts, *more.values()]
        known = [part for part in parts if part is not inputs.test or TEST in wanted]
        given = (loaded, parts, known, facts["seed"], steps)
        own = (learner or PartsLearner)(*given)
        representation, vectors = _learn(loaded.config.representation, own, inputs, known, facts)
    else:
        representation, stored = found
        vectors = stored or [vectors_of_part(representation, part, steps) for part in inputs.parts]
    train, *test = (
        replace(part, features=_require_finite(of_part, part))
        for part, of_part in zip(dataset.parts, vectors, strict=True)
    )
    shape = FeatureShape(numeric=representation.width)
    return replace(
        inputs,
        shape=shape,
        train=train,
        test=test[0] if test else None,
        input_digest=dataset.digest(),
    ), representation


def _require_finite(vectors: NDArray[np.float32], part: DataPart) -> NDArray[np.float32]:
    """The vectors. Raises DataError if one overflowed."""
    if not all_finite(vectors):
        raise DataError(
            f"{part.source}: the representation gives no finite numbers for some rows; their "
            "features are too large, or too far from those of training"
        )
    return vectors


def reproduced(
    loaded: LoadedConfig, dataset: Dataset, representation: Representation, steps: Steps = silent
) -> NDArray[np.float32]:
    """[n, width] what a map that was learned elsewhere makes of the training features here."""
    return vectors_of_part(representation, _with_embeddings(loaded, dataset).train, steps)


def _with_embeddings(loaded: LoadedConfig, dataset: Dataset) -> Dataset:
    """Embeddings from files instead of features, if the config names some."""
    config = given_vectors(loaded.config.representation)
    if config is None:
        return dataset

    def part(given: DataPart, name: str, taken: int | None) -> DataPart:
        path = loaded.path(name)
        vectors = read_embeddings(path, config.array, given.rows, taken)
        return replace(given, features=vectors, bytes_=False)

    train = part(dataset.train, config.train, loaded.config.data.rows)
    test = dataset.test
    if test is not None:
        assert config.test is not None
        test = part(test, config.test, None)
        if test.features.shape[1] != train.features.shape[1]:
            raise loaded.error(
                ("representation", "test"),
                f"has {test.features.shape[1]:,} columns, but the training part has "
                f"{train.features.shape[1]:,}",
            )
    encoder = ArrayEncoder.of(train)
    return Dataset(encoder.shape, train, test, encoder=encoder)


def _facts(
    loaded: LoadedConfig, inputs: Dataset, unlabelled: dict[str, DataPart], *, with_test: bool
) -> dict[str, Any]:
    """All that decides the vectors."""
    config = loaded.config.representation
    assert config is not None
    options = config.model_dump(mode="json", exclude={"unlabelled", "train", "test", "seed"})
    test = inputs.test
    return {
        "kind": config.kind,
        "options": options,
        "seed": _seed(loaded),
        "features_sha256": inputs.digest(),
        "test_features_sha256": None if test is None else array_digest(test.features),
        "learnt_from_test": with_test,
        "unlabelled": [
            {"file": name, "rows": part.rows, "features_sha256": array_digest(part.features)}
            for name, part in unlabelled.items()
        ],
    }


def _seed(loaded: LoadedConfig) -> int:
    own = getattr(loaded.config.representation, "seed", None)
    return loaded.config.training.seed if own is None else int(own)


def _learn(
    config: Kind,
    learner: PartsLearner,
    inputs: Dataset,
    known: Sequence[DataPart],
    facts: dict[str, Any],
) -> tuple[Representation, list[NDArray[np.float32]]]:
    learned = learner.learnt(config, inputs.shape)
    representation = Representation(
        kind_name(config),
        inputs.shape,
        learned.arrays,
        facts={**facts, "rows": sum(part.rows for part in known), "raw_width": learned.raw_width},
        notes=(*learned.notes, *_notes(facts)),
    )
    return representation, learned.vectors[: len(inputs.parts)]


def _notes(facts: dict[str, Any]) -> tuple[str, ...]:
    files = [f"{source['file']} ({source['rows']:,} rows)" for source in facts["unlabelled"]]
    if facts["learnt_from_test"]:
        files.append("the test part")
    if not files:
        return ()
    listed = one_line(", ".join(files))
    return (
        f"the representation was also learned from the features of {listed}, but from no labels",
    )
