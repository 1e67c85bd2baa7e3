"""Columns made of features: standardised numbers, splines, one-hot categories.

Splines are of first degree, made of ramps: min(max((x − k)/(k′ − k), 0), 1) for neighbouring knots
k and k′. Sums of them are all continuous functions that are linear between knots. A ramp ends where
the next one begins, so that a row far out does not take a principal component for itself.

A batch is encoded by gathers, comparisons and sums. Which columns, knots and categories there are
comes from the features that the representation is learned from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32, Int32
from numpy.typing import NDArray
from pydantic import Field, StrictInt

from labeldp_trainer.config.data import Number
from labeldp_trainer.config.representation import (
    MOST_COLUMNS,
    NOTHING_LEFT,
    FeatureSource,
    LearnedKind,
    Learnt,
)
from labeldp_trainer.operators import clip, flat, joined, matmul

Ints = NDArray[np.int32]


class Pca(LearnedKind):
    """Principal components of standardized numbers and one-hot categories, or of pixels."""

    kind: Literal["pca"]

    def learn(self, source: FeatureSource) -> Learnt:
        """Raises ConfigError."""
        return learn_columns(source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, w]."""
        return columns_raw(x, arrays)


class Splines(LearnedKind):
    """Tables: linear splines of each number, one-hot categories, and pairs of columns."""

    kind: Literal["splines"]
    needs: ClassVar[Literal["images", "table"] | None] = "table"
    knots: StrictInt = Field(
        8,
        ge=0,
        le=256,
        description="knots of each numeric column between its smallest and largest value, at "
        "quantiles of its distinct values",
    )
    min_count: StrictInt = Field(
        10, ge=1, description="categories with fewer rows share one column per feature"
    )

    def learn(self, source: FeatureSource) -> Learnt:
        """Raises ConfigError."""
        return _learn_splines(self, source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, w]."""
        return _splines_raw(x, arrays)


class RandomFourier(LearnedKind):
    """Random cosines whose inner products approximate a Gaussian kernel."""

    kind: Literal["random_fourier"]
    features: Annotated[StrictInt, Field(ge=1, le=MOST_COLUMNS)] = 1024
    scale: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="bandwidth of the kernel, in units of the median distance between rows"
    )

    def learn(self, source: FeatureSource) -> Learnt:
        """Raises ConfigError."""
        return _learn_fourier(self, source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, w]."""
        return _fourier_raw(x, arrays)


@dataclass(frozen=True)
class _Numbers:
    """Numeric columns.

    Attributes:
        names: of all columns, for messages.
        values: [n, kept] standardised.
        kept: [kept] those that are not constant.
        means, deviations: [kept].
    """

    names: Sequence[str]
    values: NDArray[np.float32]
    kept: Ints
    means: NDArray[np.float32]
    deviations: NDArray[np.float32]

    @classmethod
    def of(cls, source: FeatureSource) -> _Numbers:
        numbers = np.concatenate([_fields(part)[0] for part in source.features])
        means = numbers.mean(axis=0, dtype=np.float64)
        deviations = numbers.std(axis=0, dtype=np.float64)
        varies = (numbers != numbers[:1]).any(axis=0)
        kept = np.flatnonzero(varies & (deviations > 0)).astype(np.int32)
        means, deviations = (a[kept].astype(np.float32) for a in (means, deviations))
        with np.errstate(over="ignore", invalid="ignore"):
            values = (numbers[:, kept] - means[None, :]) / deviations[None, :]
        finite = bool(np.isfinite(values).all())
        source.require(finite, "some standardized features are infinite; rescale the features")
        named = getattr(source.loaded.config.data, "numeric_features", None)
        names = named or [str(j) for j in range(numbers.shape[1])]
        return cls(names, values, kept, means, deviations)

    @property
    def notes(self) -> tuple[str, ...]:
        """The columns that are left out."""
        dropped = sorted(set(range(len(self.names))) - set(self.kept.tolist()))
        if not dropped:
            return ()
        listed = ", ".join(repr(self.names[j]) for j in dropped[:5])
        more = f" and {len(dropped) - 5:,} more" if len(dropped) > 5 else ""
        return (f"the representation ignores constant features: {listed}{more}",)

    def quantiles(self, count: int) -> list[NDArray[np.float32]]:
        """Of each column the smallest and the largest value, and at most ``count`` between them."""
        places, knots = np.linspace(0, 1, count + 2), []
        for column in self.values.T:
            # Of distinct values, so that a heavy one (zero, mostly) does not take all knots.
            knots.append(np.unique(np.quantile(np.unique(column), places, method="nearest")))
        return knots


def _ramps(knots: Sequence[NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """The column of each ramp, where it starts to rise from 0 to 1, and how steeply."""
    none = np.zeros(0, np.float32)
    return {
        "ramp_column": np.repeat(
            np.arange(len(knots), dtype=np.int32), [len(column) - 1 for column in knots]
        ),
        "ramp_start": np.concatenate([none, *(column[:-1] for column in knots)]),
        "ramp_slope": np.concatenate([none, *(1 / np.diff(column) for column in knots)]),
    }


def _learn(source: FeatureSource, *, min_count: int) -> tuple[Learnt, _Numbers]:
    """Arrays of the encoding, and the numeric columns."""
    numbers = _Numbers.of(source)
    sizes = source.shape.vocabularies
    codes = np.concatenate([_fields(part)[1] for part in source.features])
    merged, counts = [np.zeros(0, np.int32)], []
    for j, size in enumerate(sizes):
        often = np.bincount(codes[:, j], minlength=size) >= min_count
        merged.append(np.where(often, np.cumsum(often), 0).astype(np.int32))  # 0: all others
        counts.append(int(often.sum()) + 1)
    arrays = {
        "numeric_kept": numbers.kept,
        "numeric_mean": numbers.means,
        "numeric_deviation": numbers.deviations,
        "code_offset": np.cumsum([0, *sizes], dtype=np.int32)[:-1],
        "code_merged": np.concatenate(merged),
        "one_hot_column": np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        "one_hot_code": np.concatenate([np.zeros(0, np.int32), *map(np.arange, counts)]).astype(
            np.int32
        ),
    }
    _require_width(source, len(numbers.kept) + len(arrays["one_hot_code"]))
    return Learnt(arrays, numbers.notes), numbers


def columns_raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, w]: standardised numbers and one-hot categories; images are flattened pixels."""
    if "numeric_kept" not in arrays:
        return flat(x)
    numbers, codes = _encoded(x, arrays)
    return joined(*numbers, *(_one_hot(each, arrays) for each in codes))


def _splines_raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, w]: ramps and one-hot categories."""
    numbers, codes = _encoded(x, arrays)
    parts = [_ramps_of(each, arrays) for each in numbers]
    parts += [_one_hot(each, arrays) for each in codes]
    return joined(*parts)


def _encoded(x: Any, arrays: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Standardised numbers [b, kept] and merged codes [b, categorical]: each if there are any."""
    numbers, codes = [], []
    if arrays["numeric_kept"].shape[0]:
        given = x["numeric"] if isinstance(x, Mapping) else x
        centred = given[:, arrays["numeric_kept"]] - arrays["numeric_mean"][None, :]
        numbers.append(centred / arrays["numeric_deviation"][None, :])
    if arrays["code_offset"].shape[0]:
        codes.append(arrays["code_merged"][x["categorical"] + arrays["code_offset"][None, :]])
    return numbers, codes


def _ramps_of(numbers: Float32[Any, "b kept"], arrays: Mapping[str, Any]) -> Any:
    moved = numbers[:, arrays["ramp_column"]] - arrays["ramp_start"][None, :]
    return clip(moved * arrays["ramp_slope"][None, :], 0.0, 1.0)


def _one_hot(codes: Int32[Any, "b c"], arrays: Mapping[str, Any]) -> Any:
    is_code = codes[:, arrays["one_hot_column"]] == arrays["one_hot_code"][None, :]
    return is_code.astype(np.float32)


def learn_columns(source: FeatureSource) -> Learnt:
    """Standardised numbers and one-hot categories; of images nothing but their width."""
    if source.shape.image is not None:
        _require_width(source, int(np.prod(source.shape.image)))
        return Learnt({})
    return _learn(source, min_count=1)[0]


def _learn_splines(config: Splines, source: FeatureSource) -> Learnt:
    learnt, numbers = _learn(source, min_count=config.min_count)
    arrays = {**learnt.arrays, **_ramps(numbers.quantiles(config.knots))}
    width = len(arrays["ramp_column"]) + len(arrays["one_hot_code"])
    _require_width(source, width)
    return Learnt(arrays, learnt.notes)


def _require_width(source: FeatureSource, width: int) -> None:
    rare = "; add features, or let rarer categories count (a smaller min_count)"
    source.require(width > 0, NOTHING_LEFT + rare)
    reason = f"{width:,} columns (one per category) are more than {MOST_COLUMNS:,}"
    source.require(width <= MOST_COLUMNS, reason)


def _fields(part: Any) -> tuple[NDArray[np.float32], Ints]:
    """Numbers [n, numeric] and codes [n, categorical] of features."""
    if isinstance(part, Mapping):
        return part["numeric"], part["categorical"]
    return part, np.zeros((len(part), 0), np.int32)


# Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007).

_SAMPLE = 1000  # rows whose distances give the bandwidth


def _learn_fourier(config: RandomFourier, source: FeatureSource) -> Learnt:
    learnt = learn_columns(source)
    random = np.random.default_rng(source.seed)
    sample = _sample(source, learnt, random)
    bandwidth = config.scale * _median_distance(sample)
    source.require(bandwidth > 0, "most rows have the same features, so no bandwidth can be chosen")
    directions = random.standard_normal((sample.shape[1], config.features)) / bandwidth
    phases = random.uniform(0, 2 * math.pi, config.features)
    drawn = {"directions": directions.astype(np.float32), "phases": phases.astype(np.float32)}
    return Learnt({**learnt.arrays, **drawn}, learnt.notes)


def _fourier_raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, features]: √2·cos(directions·x + phase)."""
    from labeldp_trainer.models.layers import cos  # noqa: PLC0415

    angles = matmul(columns_raw(x, arrays), arrays["directions"])
    return math.sqrt(2) * cos(angles + arrays["phases"][None, :])


def _sample(
    source: FeatureSource, learnt: Learnt, random: np.random.Generator
) -> NDArray[np.float32]:
    """Columns of random rows of the training part."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    chosen = np.sort(random.permutation(source.parts[0].rows)[:_SAMPLE])
    x = jax.tree.map(lambda leaf: jnp.asarray(leaf[chosen]), source.features[0])
    arrays = {name: jnp.asarray(array) for name, array in learnt.arrays.items()}
    return np.asarray(columns_raw(x, arrays))


def _median_distance(points: NDArray[np.float32]) -> float:
    wide = points.astype(np.float64)
    squares = np.einsum("nd,nd->n", wide, wide)
    distances = squares[:, None] + squares[None, :] - 2 * wide @ wide.T
    above = distances[np.triu_indices(len(wide), 1)]
    return math.sqrt(max(float(np.median(above)), 0.0)) if len(above) else 0.0
