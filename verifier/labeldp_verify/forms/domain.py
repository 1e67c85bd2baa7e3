"""Label domains: the finite list of labels that a randomizer knows, and what others become.

A domain is pure data. ``default`` is the label that replaces everything outside the domain;
``None`` means that numbers are clamped to the nearest end. ``null`` is the label that replaces what
is no label at all: nulls, NaN, and what cannot be read. Files without a rule of their own for nulls
have ``None`` there: such labels follow ``default``, and take the lowest label where numbers are
clamped. ``keeps_nulls`` says that typed nulls stay null, because their pattern is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.exact_numbers import ExactNumbers, whole

Category = str | int
Floats = NDArray[np.float64]
Rounding = Literal["nearest", "unbiased"]
N = TypeVar("N", int, NDArray[np.int64])


@dataclass(frozen=True)
class _Stated:
    """A domain, whose fields are those that the certificate states; of one column."""

    kind: ClassVar[str]

    @property
    def strides(self) -> list[int]:
        """By how much the place of each column moves the number of a label."""
        return [1]

    def places_of(self, number: N) -> list[N]:
        """The place of each column in the label of a number, or the [n] of numbers [n]."""
        return [number]

    def number(self, places: Iterable[int]) -> int:
        """The number of the label of these places, one a column."""
        return sum(p * stride for p, stride in zip(places, self.strides, strict=True))

    def name(self, value: Any) -> str:
        """How people read a label."""
        return str(value)

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        stated = {own.name: getattr(self, own.name) for own in fields(self)}
        default, null, keeps = (stated.pop(name) for name in ("default", "null", "keeps_nulls"))
        out: Any = "clamp" if default is None else {"default": default}
        if null is not None or keeps:
            # Readers that do not know the rule find neither of the old forms, and refuse the file.
            out = {"others": out, "nulls": "public" if keeps else {"default": null}}
        return {"kind": self.kind, **stated, "out_of_domain": out}


@dataclass(frozen=True)
class IntegerDomain(_Stated):
    """The integers ``min … max``."""

    min: int
    max: int
    default: int | None = None
    null: int | None = None
    keeps_nulls: bool = False

    kind = "integer"
    words_per_label = 1

    @property
    def size(self) -> int:
        """Number of labels k."""
        return self.max - self.min + 1

    @property
    def listed(self) -> Sequence[int]:
        """[k] the labels as people write them."""
        return range(self.min, self.max + 1)

    def labels(self) -> ExactNumbers:
        """[k] the labels as exact numbers, increasing."""
        return ExactNumbers(whole(self.listed))


@dataclass(frozen=True)
class RealDomain(_Stated):
    """``points`` evenly spaced labels on [min, max]; other numbers are rounded to the grid.

    ``nearest`` rounds to the nearest point (halves up). ``unbiased`` rounds up with the probability
    that keeps the mean (randomized rounding, Algorithm 3 of the optimal unbiased randomizers paper,
    2023) and consumes a second random word a label.
    """

    min: float
    max: float
    points: int
    rounding: Rounding = "nearest"
    default: float | None = None
    null: float | None = None
    keeps_nulls: bool = False

    kind = "real"

    @property
    def size(self) -> int:
        """Number of labels k."""
        return self.points

    @property
    def words_per_label(self) -> int:
        """Random words (uint64) that one label consumes."""
        return 2 if self.rounding == "unbiased" else 1

    @property
    def points_per_unit(self) -> float:
        """The factor from a distance to grid steps, as the graph applies it."""
        return (self.points - 1) / (self.max - self.min)

    def labels(self) -> ExactNumbers:
        """[k] the grid points: the float64 nearest to each, as exact numbers."""
        return ExactNumbers.of(self.listed)

    @property
    def listed(self) -> Sequence[float]:
        """[k] the labels as people write them: the grid points, increasing."""
        lo, hi = Fraction(self.min), Fraction(self.max)
        step = (hi - lo) / (self.points - 1)
        unit = math.lcm(lo.denominator, step.denominator)
        start, stride = int(lo * unit), int(step * unit)
        return [(start + j * stride) / unit for j in range(self.points)]  # one rounding

    def is_faithful(self) -> bool:
        """Whether float64 can tell the grid points apart: each is rounded to itself."""
        if not (math.isfinite(self.max - self.min) and math.isfinite(self.points_per_unit)):
            return False
        points = np.array(self.listed)
        extremes = (0, 2**64 - 1) if self.rounding == "unbiased" else (0,)
        reach = 2.0**-20  # grid steps by which a point's own position may be off
        apart = abs(self.positions(points) - np.arange(self.points))
        return bool(np.all(points[:-1] < points[1:]) and np.all(apart <= reach)) and all(
            0 <= self.index(self.max, w) < self.points for w in extremes
        )

    def positions(self, labels: Floats) -> Floats:
        """Grid steps from ``min`` to labels [n], by the graph's own float64 operations."""
        steps: Floats = (self.inside(labels) - self.min) * self.points_per_unit
        return np.minimum(steps, float(self.points - 1))

    def inside(self, labels: Floats) -> Floats:
        """Labels [n] after the rules for nulls and for labels outside the domain."""
        if self.null is not None:
            labels = np.where(np.isnan(labels), self.null, labels)
        if self.default is not None:
            known = (labels >= self.min) & (labels <= self.max)
            return np.where(known, labels, self.default)
        # Without a rule for nulls, NaN takes the lowest label.
        raised: Floats = np.where(labels >= self.min, labels, self.min)
        return np.minimum(raised, self.max)

    def cells(self, labels: Floats) -> tuple[NDArray[np.int64], Floats]:
        """[n] the point below each label, and which part of the way to the next lies below it."""
        positions = self.positions(labels)
        below = np.floor(positions)
        return below.astype(np.int64), positions - below

    def position(self, label: float) -> float:
        """``positions`` of one label."""
        return float(self.positions(np.float64(label)))  # type: ignore[arg-type]

    def indices(self, labels: Floats, second_words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[n] the grid indices that the graph gives labels and their second words (if any)."""
        if self.rounding == "nearest":
            return self.nearest(labels)
        below, fractions = self.cells(labels)
        up = (second_words >> np.uint64(11)).astype(np.float64) * 2.0**-53 < fractions
        return below + up

    def nearest(self, labels: Floats) -> NDArray[np.int64]:
        """[n] the index of the nearest point, halves up."""
        return np.floor(self.positions(labels) + 0.5).astype(np.int64)

    @property
    def widest_step(self) -> Fraction:
        """The largest distance between two neighbouring points."""
        return (Fraction(self.max) - Fraction(self.min)) / (self.points - 1)

    def index(self, label: float, second_word: int = 0) -> int:
        """``indices`` of one label."""
        return int(self.indices(np.array([label]), np.array([second_word], np.uint64))[0])


MAX_GRID_POINTS = 10_000  # of a grid that is listed


@dataclass(frozen=True)
class GridDomain(RealDomain):
    """Listed labels, in increasing order and at any distances; other numbers are rounded to them.

    ``nearest`` rounds at the middle between two labels. ``unbiased`` rounds to one of the two
    neighbours, with the probability that keeps the mean. The graph finds the label below by halving
    the list, and compares a number with the listed float64 alone: a listed label is always its own
    point, however the distances differ.
    """

    values: tuple[float, ...] = ()

    kind = "grid"

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        rounding: Rounding = "nearest",
        default: float | None = None,
        null: float | None = None,
        *,
        keeps_nulls: bool = False,
    ) -> GridDomain:
        """Of at least two labels in increasing order."""
        listed = tuple(values)
        ends = listed[0], listed[-1], len(listed)
        return cls(*ends, rounding, default, null, keeps_nulls, listed)

    @property
    def listed(self) -> Sequence[float]:
        """[k] the labels, increasing."""
        return self.values

    @property
    def bounds(self) -> tuple[float, ...]:
        """[k] the least number that each label takes, as the graph compares: the label itself, or
        rounded to the nearest, the middle between it and the one before."""
        if self.rounding == "unbiased":
            return self.values
        pairs = pairwise(map(Fraction, self.values))
        return self.values[0], *(float((low + high) / 2) for low, high in pairs)

    @property
    def per_unit(self) -> tuple[float, ...]:
        """[k] one over the distance to the next label; 0 of the last."""
        return *(1.0 / (high - low) for low, high in pairwise(self.values)), 0.0

    def is_faithful(self) -> bool:
        """Whether float64 can tell the labels apart, and whether none is −0."""
        with np.errstate(all="ignore"):
            values, bounds = np.array(self.values), np.array(self.bounds)
            per_unit = 1.0 / np.diff(values)
        finite = np.isfinite(values).all() and np.isfinite(per_unit).all() and (per_unit > 0).all()
        apart = np.all(values[:-1] < bounds[1:]) and np.all(bounds <= values)
        signs = not np.any(np.signbit(values) & (values == 0))
        return bool(finite and apart and signs and math.isfinite(self.max - self.min))

    def places(self, labels: Floats) -> NDArray[np.int64]:
        """[n] the last label whose bound is not above, of labels that may be anything."""
        inside = self.inside(np.asarray(labels, np.float64))
        return np.searchsorted(self.bounds, inside, side="right").astype(np.int64) - 1

    def nearest(self, labels: Floats) -> NDArray[np.int64]:
        """[n] the index of the nearest label; that of the higher one in the middle."""
        return self.places(labels)

    def cells(self, labels: Floats) -> tuple[NDArray[np.int64], Floats]:
        """[n] the label below each number, and which part of the way to the next lies below it."""
        inside, values = self.inside(np.asarray(labels, np.float64)), np.array(self.values)
        below = np.searchsorted(values, inside, side="right").astype(np.int64) - 1
        return below, (inside - values[below]) * np.array(self.per_unit)[below]

    def positions(self, labels: Floats) -> Floats:
        """The places of labels [n] among the listed ones; between two, with the part of the way."""
        below, fractions = self.cells(labels)
        return below + fractions

    @property
    def widest_step(self) -> Fraction:
        """The largest distance between two neighbouring labels."""
        return max(high - low for low, high in pairwise(map(Fraction, self.values)))

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        stated = super().to_json()
        for name in ("min", "max", "points"):  # which the values say
            del stated[name]
        return {**stated, "values": list(self.values)}


@dataclass(frozen=True)
class CategoricalDomain(_Stated):
    """Named labels without order: all text, or all integers; unknown ones become ``default``."""

    values: tuple[Category, ...]
    default: Category
    null: Category | None = None
    keeps_nulls: bool = False

    kind = "categorical"
    words_per_label = 1

    @property
    def size(self) -> int:
        """Number of labels k."""
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """True if the categories are strings, false if they are integers."""
        return isinstance(self.values[0], str)

    @property
    def listed(self) -> Sequence[Category]:
        """[k] the labels as people write them."""
        return self.values

    def labels(self) -> list[Category]:
        """The k categories, in the order of the spec."""
        return list(self.values)

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        return {**super().to_json(), "values": list(self.values)}


Domain = IntegerDomain | RealDomain | CategoricalDomain


def strides_of(sizes: Sequence[int]) -> list[int]:
    """By how much each place moves the number of a combination, the last one by 1."""
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def missing_label(domain: Domain) -> Category | float:
    """The label that a null becomes: by its own rule, or else the default, or the lowest label."""
    if domain.null is not None:
        return domain.null
    if domain.default is not None:
        return domain.default
    assert not isinstance(domain, CategoricalDomain)
    return domain.min
