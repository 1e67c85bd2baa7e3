"""From the part ``representation`` of a config to vectors instead of features."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify.printable import one_line
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import (
    DEFAULT_COMPONENTS,
    TEST,
    AnyRepresentation,
    Patches,
    RowGraph,
    Scattering,
    given_vectors,
    members,
)
from labeldp_trainer.data import DataPart, Dataset, FeatureShape, array_digest, load_unlabelled
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.data.features import ArrayEncoder
from labeldp_trainer.errors import DataError
from labeldp_trainer.representation.kind import (
    Announce,
    Steps,
    nowhere,
    silent,
)
from labeldp_trainer.representation.learner import PartsLearner, vectors_of_part
from labeldp_trainer.representation.representation import (
    Representation,
    digest_of,
    find,
    kind_name,
)
from labeldp_trainer.representation.scattering import columns_of, default_scales


def represented(
    loaded: LoadedConfig,
    dataset: Dataset,
    output: Path,
    steps: Steps = silent,
    announce: Announce = nowhere,
    learner: Callable[..., PartsLearner] | None = None,
) -> tuple[Dataset, Representation | None]:
    """The data with vectors [n, width] instead of features, and the map from one to other;
    the data alone if the config has no representation.

    Takes those of ``output``, or of a run folder of this user beside it, if they were learned from
    the same features with the same options. No label is looked at. ``announce`` gets a sentence
    with the time that learning may take. ``learner`` makes a ``PartsLearner``: one that is given
    for several representations learns what they share once. Raises InputError.
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
        counts = [sum(part.rows for part in some) for some in (known, parts)]
        if words := forecast(loaded.config.representation, inputs.shape.image, *counts):
            announce(words)
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
    config: AnyRepresentation,
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


# How long it takes to learn a representation of images, before it is learned: the operations of
# each part are counted from rows and pixels, and divided by the speed of this machine in a product
# of matrices that is timed now. So a machine that is busy has a longer forecast.

LEAST = 20.0
"""Seconds from which a forecast is worth a line."""
_EITHER_WAY = 2.0  # the range: times and over
_SIDE, _PROBE = 768, 0.3  # of the matrices, and about how many seconds are timed
_BEGINNING = 10.0  # seconds to compile and, on a processor, for what does not grow with rows
_PATCHES, _WAVELETS, _SQUARES, _EIGEN, _PAIRS, _GRAPH = 1.5, 300.0, 3.0, 30.0, 2.0, 250.0
"""By how much operations of each kind are slower than those of a product of matrices, as measured
with 60,000 images of 28 × 28 pixels (docs/measured/public-features.md)."""


def forecast(
    config: AnyRepresentation, image: tuple[int, int, int] | None, known: int, rows: int
) -> str | None:
    """A sentence, or None if it is about no images or takes a few seconds.

    ``image`` is the shape of one; ``known`` rows are learned from, and all ``rows`` are mapped.
    """
    if image is None:
        return None
    seconds = _BEGINNING + operations(config, image, known, rows) / _speed()
    if seconds < LEAST:
        return None
    low, high = (_in_words(seconds * factor) for factor in (1 / _EITHER_WAY, _EITHER_WAY))
    return (
        f"learning the representation of {rows:,} images takes about {_in_words(seconds)} "
        f"(estimated, from a short measurement on this machine: {low} to {high}); it is kept for "
        "runs beside this one"
    )


def operations(
    config: AnyRepresentation, image: tuple[int, int, int], known: int, rows: int
) -> float:
    """Of all parts, each once, in operations of a product of matrices."""
    parts, todo = {}, [config]
    while todo:
        one = todo.pop()
        parts[one.model_dump_json()] = sum(_operations(one, image, known, rows))
        todo += members(one)
    return sum(parts.values())


def _operations(
    config: AnyRepresentation, image: tuple[int, int, int], known: int, rows: int
) -> Iterator[float]:
    height, width, channels = image
    columns = 0
    if isinstance(config, Patches):
        size = config.size
        places = max(height - size + 1, 0) * max(width - size + 1, 0)
        columns = config.patches * config.pool**2
        yield _PATCHES * 2.0 * rows * places * size**2 * channels * config.patches
    elif isinstance(config, Scattering):
        side = min(height, width)
        scales = config.scales or default_scales(side)
        per_window = columns_of(config.orders, scales, config.angles or 8, 1)
        columns = channels * per_window * config.pool**2
        yield _WAVELETS * rows * channels * per_window * height * width
    elif isinstance(config, RowGraph):
        landmarks, columns = min(known, config.landmarks), config.dims
        yield _PAIRS * 2.0 * 256 * landmarks * (landmarks + rows)
        yield _GRAPH * 2.0 * landmarks * config.dims**2
    wanted = getattr(config, "components", None) or DEFAULT_COMPONENTS
    kept = columns if wanted == "all" else min(int(wanted), columns)
    yield _SQUARES * known * columns**2 + _EIGEN * columns**3 + 2.0 * rows * columns * kept


def _speed() -> float:
    """Operations a second of a product of float32 matrices, now."""
    matrix = np.ones((_SIDE, _SIDE), np.float32)
    began, done = time.monotonic(), 0
    while (took := time.monotonic() - began) < _PROBE or not done:
        matrix @ matrix
        done += 1
    return 2.0 * _SIDE**3 * done / took


def _in_words(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
