"""Columns made of features: standardised numbers, splines, one-hot categories, crosses of columns.

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
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Int32
from numpy.typing import NDArray

from labeldp_trainer.config.data import TableData
from labeldp_trainer.config.representation import MOST_COLUMNS, RandomFourier, Splines
from labeldp_trainer.models.layers import cos, counted
from labeldp_trainer.models.operators import clip, flat, joined, matmul
from labeldp_trainer.representation.kind import NOTHING_LEFT, FeatureSource, Kind, Learnt

_BINS = 4  # of a numeric column in a cross: its quartiles
_MOST_ENTRIES = 1 << 24  # of the look-up tables of crosses
Ints = NDArray[np.int32]


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
        data = source.loaded.config.data
        named = data.numeric_features if isinstance(data, TableData) else None
        names = named or [str(j) for j in range(numbers.shape[1])]
        return cls(names, values, kept, means, deviations)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out."""
        dropped = sorted(set(range(len(self.names))) - set(self.kept.tolist()))
        if not dropped:
            return ()
        listed = ", ".join(repr(self.names[j]) for j in dropped[:5])
        more = f" and {len(dropped) - 5:,} more" if len(dropped) > 5 else ""
        return (f"the representation ignores constant features: {listed}{more}",)

    def quantiles(self, count: int) -> list[NDArray[np.float32]]:
        """Of each column the smallest and the largest value, and at most ``count`` between them."""
        places, found = np.linspace(0, 1, count + 2), []
        for column in self.values.T:
            # Of distinct values, so that a heavy one (zero, mostly) does not take all knots.
            found.append(np.unique(np.quantile(np.unique(column), places, method="nearest")))
        return found


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


def _learn(source: FeatureSource, *, min_count: int) -> tuple[Learnt, _Numbers, Ints]:
    """Arrays of the encoding, and the merged codes [n, categorical]."""
    numbers = _Numbers.of(source)
    sizes = source.shape.vocabularies
    codes = np.concatenate([_fields(part)[1] for part in source.features])
    merged, counts = [np.zeros(0, np.int32)], []
    for j, size in enumerate(sizes):
        often = np.bincount(codes[:, j], minlength=size) >= min_count
        merged.append(np.where(often, np.cumsum(often), 0).astype(np.int32))  # 0: all others
        counts.append(int(often.sum()) + 1)
    offsets = np.cumsum([0, *sizes], dtype=np.int32)[:-1]
    table = np.concatenate(merged)
    arrays = {
        "numeric_kept": numbers.kept,
        "numeric_mean": numbers.means,
        "numeric_deviation": numbers.deviations,
        "code_offset": offsets,
        "code_merged": table,
        "one_hot_column": np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        "one_hot_code": np.concatenate([np.zeros(0, np.int32), *map(np.arange, counts)]).astype(
            np.int32
        ),
    }
    _require_width(source, len(numbers.kept) + len(arrays["one_hot_code"]))
    return Learnt(arrays, numbers.notes), numbers, table[codes + offsets[None, :]]


def columns_raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, w]: standardised numbers and one-hot categories; images are flattened pixels."""
    if "numeric_kept" not in arrays:
        return flat(x)
    numbers, codes = _encoded(x, arrays)
    return joined(*numbers, *(_one_hot(each, arrays) for each in codes))


def _splines_raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, w]: ramps, one-hot categories and crosses."""
    numbers, codes = _encoded(x, arrays)
    parts = [_ramps_of(each, arrays) for each in numbers]
    parts += [_one_hot(each, arrays) for each in codes]
    if "cross_left" in arrays:
        parts.append(_crossed(numbers, codes, arrays))
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
    found = codes[:, arrays["one_hot_column"]] == arrays["one_hot_code"][None, :]
    return found.astype(jnp.float32)


def _crossed(numbers: list[Any], codes: list[Any], arrays: Mapping[str, Any]) -> Any:
    """[b, w]: how many pairs fall into each column, times its scale."""
    binned = [
        (each[:, :, None] >= arrays["bin_edge"][None, :, :]).astype(jnp.int32).sum(axis=2)
        for each in numbers
    ]
    fields = joined(*codes, *binned)
    left, right = fields[:, arrays["cross_left"]], fields[:, arrays["cross_right"]]
    place = left * arrays["cross_size"][None, :] + right + arrays["cross_offset"][None, :]
    pairs, width = arrays["cross_left"].shape[0], arrays["cross_scale"].shape[0]
    counts = counted(arrays["cross_column"][place], pairs, width)
    return counts * arrays["cross_scale"][None, :]


def learn_columns(source: FeatureSource) -> Learnt:
    """Standardised numbers and one-hot categories; of images nothing but their width."""
    if source.shape.image is not None:
        _require_width(source, int(np.prod(source.shape.image)))
        return Learnt({})
    return _learn(source, min_count=1)[0]


def _learn_splines(source: FeatureSource) -> Learnt:
    config = source.config
    assert isinstance(config, Splines)
    learnt, numbers, merged = _learn(source, min_count=config.min_count)
    found = {**learnt.arrays, **_ramps(numbers.quantiles(config.knots))}
    width = len(found["ramp_column"]) + len(found["one_hot_code"])
    if config.crosses:
        found |= _crosses(source, config, learnt.arrays, numbers, merged)
        width += len(found["cross_scale"])
    _require_width(source, width)
    return Learnt(found, learnt.notes)


def _crosses(
    source: FeatureSource,
    config: Splines,
    arrays: Mapping[str, NDArray[Any]],
    numbers: _Numbers,
    merged: Ints,
) -> dict[str, NDArray[Any]]:
    """Pairs of fields: categories, then numbers in bins; and the column of each pair of values."""
    data = source.loaded.config.data
    assert isinstance(data, TableData)
    edges = np.full((len(numbers.kept), _BINS - 1), np.inf, np.float32)
    for j, found in enumerate(numbers.quantiles(_BINS - 1)):
        edges[j, : len(found) - 2] = found[1:-1]
    binned = (numbers.values[:, :, None] >= edges[None, :, :]).sum(axis=2)
    fields = np.concatenate([merged, binned], axis=1).astype(np.int32)
    names = [*data.categorical, *(numbers.names[j] for j in numbers.kept)]
    sizes = [int(column.max()) + 1 for column in fields.T]
    # A category may be there without a row of its own: every code needs its place.
    for j in range(len(data.categorical)):
        sizes[j] = int((arrays["one_hot_column"] == j).sum())
    hashed = isinstance(config.crosses, int)
    pairs = _pairs(source, config, names)
    entries = [sizes[i] * sizes[j] for i, j in pairs]
    reason = f"{sum(entries):,} pairs of values are too many; list fewer pairs, or raise min_count"
    source.require(sum(entries) <= _MOST_ENTRIES, reason, "crosses")
    tables, width = [], config.crosses if isinstance(config.crosses, int) else 0
    for (i, j), count in zip(pairs, entries, strict=True):
        if hashed:
            tables.append(hashed_columns(i, j, sizes[i], sizes[j], width))
            continue
        seen = np.bincount(fields[:, i] * sizes[j] + fields[:, j], minlength=count)
        often = seen >= config.min_count
        tables.append(np.where(often, width + np.cumsum(often), width))  # the rest share one
        width += int(often.sum()) + 1
    # A field is in many crosses: together they should not outweigh it.
    scale = math.sqrt(len(names) / (2 * len(pairs)))
    return {
        "bin_edge": edges,
        "cross_left": np.array([i for i, _ in pairs], np.int32),
        "cross_right": np.array([j for _, j in pairs], np.int32),
        "cross_size": np.array([sizes[j] for _, j in pairs], np.int32),
        "cross_offset": np.cumsum([0, *entries], dtype=np.int32)[:-1],
        "cross_column": np.concatenate(tables).astype(np.int32),
        "cross_scale": np.full(width, scale, np.float32),
    }


def _pairs(source: FeatureSource, config: Splines, names: Sequence[str]) -> list[tuple[int, int]]:
    if isinstance(config.crosses, int):
        reason = "needs at least two features that are not constant"
        source.require(len(names) > 1, reason, "crosses")
        return list(combinations(range(len(names)), 2))
    for name in (name for pair in config.crosses for name in pair):
        source.require(name in names, f"{name!r} is not a feature, or is constant", "crosses")
    return [(names.index(a), names.index(b)) for a, b in config.crosses]


def hashed_columns(
    left: int, right: int, left_size: int, right_size: int, width: int
) -> NDArray[np.int32]:
    """[left_size · right_size] the column of each pair of values: SplitMix64 of all four numbers.

    The same in every process and on every machine.
    """
    a, b = np.divmod(np.arange(left_size * right_size, dtype=np.uint64), np.uint64(right_size))
    state: NDArray[np.uint64] = np.zeros_like(a)
    for word in (np.full_like(a, left), np.full_like(a, right), a, b):
        state = _mixed(state ^ word)
    return (state % np.uint64(width)).astype(np.int32)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood 2014), modulo 2^64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


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


PCA = Kind(learn_columns, columns_raw, chunk=512)
SPLINES = Kind(_learn_splines, _splines_raw, chunk=512)


# Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007).

_SAMPLE = 1000  # rows whose distances give the bandwidth


def _learn_fourier(source: FeatureSource) -> Learnt:
    config = source.config
    assert isinstance(config, RandomFourier)
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
    angles = matmul(columns_raw(x, arrays), arrays["directions"])
    return math.sqrt(2) * cos(angles + arrays["phases"][None, :])


RANDOM_FOURIER = Kind(_learn_fourier, _fourier_raw, chunk=512)


def _sample(
    source: FeatureSource, learnt: Learnt, random: np.random.Generator
) -> NDArray[np.float32]:
    """Columns of random rows of the training part."""
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
