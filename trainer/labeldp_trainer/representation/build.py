"""From the part ``representation`` of a config to vectors instead of features."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from labeldp_verify.printable import one_line
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import TEST, FromFile
from labeldp_trainer.data import DataPart, Dataset, FeatureShape, array_digest, load_unlabelled
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.data.encoder import ArrayEncoder
from labeldp_trainer.errors import DataError
from labeldp_trainer.representation.components import ENDS, fitted, moments, projected
from labeldp_trainer.representation.kind import NOTHING_LEFT, Arrays, FeatureSource, Steps, silent
from labeldp_trainer.representation.representation import KINDS, Representation, in_batches
from labeldp_trainer.representation.store import digest_of, find

_projected = jax.jit(projected)
_KEPT_BYTES = 1 << 30  # raw vectors that are kept between the two looks at them
_WORD = "representation"


def represented(
    loaded: LoadedConfig, dataset: Dataset, output: Path, steps: Steps = silent
) -> tuple[Dataset, Representation | None]:
    """The data with vectors [n, width] instead of features, and the map from one to other;
    the data alone if the config has no representation.

    Takes those of ``output``, or of a run folder of this user beside it, if they were learned from
    the same features with the same options. No label is looked at. Raises InputError.
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
        found = _learn(loaded, inputs, list(more.values()), facts, steps)
    representation, vectors = found
    train, *test = (
        dataclasses.replace(part, features=_require_finite(of_part, part))
        for part, of_part in zip(dataset.parts, vectors, strict=True)
    )
    shape = FeatureShape(numeric=representation.width)
    return dataclasses.replace(
        inputs,
        shape=shape,
        train=train,
        test=test[0] if test else None,
        input_digest=dataset.digest(),
    ), representation


def _require_finite(vectors: NDArray[np.float32], part: DataPart) -> NDArray[np.float32]:
    """The same. Raises DataError if a vector overflowed."""
    if not (np.isfinite(vectors.min(initial=0)) and np.isfinite(vectors.max(initial=0))):
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


def vectors_of_part(
    representation: Representation, part: DataPart, steps: Steps = silent
) -> NDArray[np.float32]:
    """[n, width] the vectors of further rows, in batches."""
    raw = _RawVectors(representation.kind, representation.arrays, steps, room=0)
    return raw.projected(representation, part)


def _with_embeddings(loaded: LoadedConfig, dataset: Dataset) -> Dataset:
    """Embeddings from files instead of features, if the config names some."""
    config = loaded.config.representation
    if not isinstance(config, FromFile):
        return dataset

    def part(given: DataPart, name: str, taken: int | None) -> DataPart:
        path = loaded.path(name)
        vectors = read_embeddings(path, config.array, given.rows, taken)
        return dataclasses.replace(given, features=vectors, bytes_=False)

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
    loaded: LoadedConfig,
    inputs: Dataset,
    unlabelled: Sequence[DataPart],
    facts: dict[str, Any],
    steps: Steps,
) -> tuple[Representation, list[NDArray[np.float32]]]:
    config = loaded.config.representation
    assert config is not None
    parts = [inputs.train, *unlabelled, *(inputs.parts[1:] if facts["learnt_from_test"] else ())]
    source = FeatureSource(loaded, inputs.shape, parts, facts["seed"], steps)
    learnt = KINDS[config.kind].learn(source)
    raw = _RawVectors(config.kind, learnt.arrays, steps, room=_KEPT_BYTES)
    found = moments(batch for part in parts for batch in raw.batches(part))
    ends = fitted(found, config.components, whiten=config.whiten)
    source.require(ends is not None, NOTHING_LEFT)
    assert ends is not None
    representation = Representation(
        config.kind,
        inputs.shape,
        {**learnt.arrays, **ends},
        facts={**facts, "rows": found.rows, "raw_width": len(found.mean)},
        notes=(*learnt.notes, *_notes(facts)),
    )
    return representation, [raw.projected(representation, part) for part in inputs.parts]


class _RawVectors:
    """Raw vectors of parts in batches; those of a first look are kept, if there is room."""

    def __init__(self, kind: str, arrays: Arrays, steps: Steps, *, room: int) -> None:
        self._kind, self._arrays, self._steps = KINDS[kind], arrays, steps
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

    def projected(self, representation: Representation, part: DataPart) -> NDArray[np.float32]:
        """[n, width] the vectors of a part."""
        found = np.empty((part.rows, representation.width), np.float32)
        done = 0
        ends = ENDS & set(representation.arrays)
        placed = jax.device_put({name: representation.arrays[name] for name in ends})
        for raw in self.batches(part):
            found[done : done + len(raw)] = _projected(raw, placed)
            done += len(raw)
        return found


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
