"""About how long it takes to learn a representation of images, before it is learned.

The operations of each part are counted from rows and pixels, and divided by the speed of this
machine in a product of matrices that is timed now. So a machine that is busy has a longer forecast.
"""

import time
from collections.abc import Iterator

import numpy as np

from labeldp_trainer.config.representation import (
    DEFAULT_COMPONENTS,
    AnyRepresentation,
    Patches,
    RowGraph,
    Scattering,
    members,
)
from labeldp_trainer.representation.scattering import columns_of, default_scales

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
