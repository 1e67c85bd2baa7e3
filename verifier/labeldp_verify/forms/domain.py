"""Label domains: the finite list of labels that a randomizer knows, and what others become.

A domain is pure data. ``default`` is the label that replaces everything outside the domain;
``None`` means that numbers are clamped to the nearest end, and that NaN and nulls take the lowest
label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.exact_numbers import ExactNumbers, whole

Category = str | int
Floats = NDArray[np.float64]
Rounding = Literal["nearest", "unbiased"]


@dataclass(frozen=True)
class _Stated:
    """A domain, whose fields are those that the certificate states."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        stated = {own.name: getattr(self, own.name) for own in fields(self)}
        default = stated.pop("default")
        out = "clamp" if default is None else {"default": default}
        return {"kind": self.kind, **stated, "out_of_domain": out}


@dataclass(frozen=True)
class IntegerDomain(_Stated):
    """The integers ``min … max``."""

    min: int
    max: int
    default: int | None = None

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
        if self.default is not None:
            inside = (labels >= self.min) & (labels <= self.max)
            labels = np.where(inside, labels, self.default)
        else:  # NaN takes the lowest label
            labels = np.minimum(np.where(labels >= self.min, labels, self.min), self.max)
        steps: Floats = (labels - self.min) * self.points_per_unit
        return np.minimum(steps, float(self.points - 1))

    def position(self, label: float) -> float:
        """``positions`` of one label."""
        return float(self.positions(np.float64(label)))  # type: ignore[arg-type]

    def indices(self, labels: Floats, second_words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[n] the grid indices that the graph gives labels and their second words (if any)."""
        positions = self.positions(labels)
        if self.rounding == "nearest":
            return np.floor(positions + 0.5).astype(np.int64)
        whole = np.floor(positions)
        up = (second_words >> np.uint64(11)).astype(np.float64) * 2.0**-53 < positions - whole
        return whole.astype(np.int64) + up

    def index(self, label: float, second_word: int = 0) -> int:
        """``indices`` of one label."""
        return int(self.indices(np.array([label]), np.array([second_word], np.uint64))[0])


@dataclass(frozen=True)
class CategoricalDomain(_Stated):
    """Named labels without order: all text, or all integers; unknown ones become ``default``."""

    values: tuple[Category, ...]
    default: Category

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

    def name(self, value: Category) -> str:
        """How people read a category."""
        return str(value)

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        return {**super().to_json(), "values": list(self.values)}


Domain = IntegerDomain | RealDomain | CategoricalDomain


def strides_of(sizes: Sequence[int]) -> list[int]:
    """By how much each place moves the number of a combination, the last one by 1."""
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def missing_label(domain: Domain) -> Category | float:
    """The label that a null becomes: the default, or the lowest label where others are clamped."""
    if domain.default is not None:
        return domain.default
    assert not isinstance(domain, CategoricalDomain)
    return domain.min
