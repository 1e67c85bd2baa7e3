"""From the part ``representation`` of a config to vectors instead of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify.printable import one_line
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart, Dataset, FeatureShape, array_digest, load_unlabelled
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.data.features import ArrayEncoder
from labeldp_trainer.errors import DataError
from labeldp_trainer.representation.learner import PartsLearner, vectors_of_part
from labeldp_trainer.representation.representation import (
    Representation,
    digest_of,
    find,
    kind_name,
)
from labeldp_trainer.representations.kind import TEST, Kind, Steps, given_vectors, silent


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
        found = _learn(loaded.config.representation, own, inputs, known, facts)
    representation, vectors = found
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
    found = learner.learnt(config, inputs.shape)
    representation = Representation(
        kind_name(config),
        inputs.shape,
        found.arrays,
        facts={**facts, "rows": sum(part.rows for part in known), "raw_width": found.raw_width},
        notes=(*found.notes, *_notes(facts)),
    )
    return representation, found.vectors[: len(inputs.parts)]


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
