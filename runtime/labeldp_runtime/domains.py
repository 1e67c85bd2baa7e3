"""A certificate's domain of labels: its values, its rules for others, and the canonical label.

Nulls follow the rule for other values unless they have a rule of their own, and become the lowest
label where numbers are clamped.

A canonical label is 64 bits that stand for all labels that the artifact cannot tell apart.

Clamping, defaults and rounding to the nearest grid point come first, by the very comparisons and
float64 operations of the artifact's graph. Unbiased rounding is random, so it comes after: there
the canonical label is the number inside the domain.

| domain | canonical label |
|---|---|
| integer | the label inside the domain, int64 |
| real, rounded to the nearest point | index of the point, int64 |
| grid, rounded to the nearest label | index of the label, int64 |
| real or grid, unbiased rounding | the label inside the domain, float64, -0.0 as 0.0 |
| categorical | index of the category, int64 |
| several columns | number of the combination of the columns' places, the last column fastest |

Private labels may be sets of classes. A class is a label; where the label has several columns it is
a tuple of labels, one a column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rules:
    """A column's rule for values outside its domain.

    Attributes:
        default: the label that others become; None where numbers are clamped.
        null: the label that nulls, NaN and unreadable values become.
        keeps_nulls: whether typed nulls have no private label, because their pattern is public.
    """

    default: Any
    null: Any
    keeps_nulls: bool

    @classmethod
    def of(cls, domain: dict[str, Any]) -> Rules:
        """Raises KeyError, TypeError or ValueError for rules of another form."""
        stated = domain["out_of_domain"]
        nulls = stated.get("nulls") if isinstance(stated, dict) else None
        others = stated["others"] if nulls is not None else stated
        default = None if others == "clamp" else others["default"]
        if nulls is not None and nulls != "public":
            return cls(default, nulls["default"], False)
        if default is not None:
            return cls(default, default, nulls is not None)
        lowest = domain["values"][0] if domain["kind"] == "grid" else domain["min"]
        return cls(default, lowest, nulls is not None)


def grid_values(domain: dict[str, Any]) -> NDArray[np.float64]:
    """[k] the listed labels of a grid. ValueError unless they increase."""
    values = domain["values"]
    if type(values) is not list or {*map(type, values)} != {float} or len(values) < 2:
        raise ValueError("the labels of a grid are no list of numbers")
    if not all(low < high for low, high in pairwise(values)):
        raise ValueError("the labels of a grid do not increase")
    return np.array(values)


def grid_bounds(domain: dict[str, Any]) -> NDArray[np.float64]:
    """[k] the least number that the nearest label is each of these for."""
    values = grid_values(domain)
    exact = [(a.as_integer_ratio(), b.as_integer_ratio()) for a, b in pairwise(values.tolist())]
    # (a/b + c/d) / 2 with one rounding, as the artifact's graph has it.
    middles = [(a * d + c * b) / (2 * b * d) for (a, b), (c, d) in exact]
    return np.array([values[0], *middles])


Canonical = Callable[[NDArray[Any]], NDArray[np.uint64]]


def canonical_labels(domain: dict[str, Any]) -> Canonical:
    """The function from label arrays [n] to canonical labels [n] of a certificate's domain.

    Its argument is what the artifact's ``label`` input takes, of text its codes. Raises ValueError
    for a kind of domain that this version does not know.
    """
    if domain["kind"] not in ("integer", "real", "grid", "categorical"):
        raise ValueError(f"unknown kind of domain {domain['kind']!r}")
    default = Rules.of(domain).default
    if domain["kind"] == "grid":
        values = grid_values(domain).tolist()
        domain = {**domain, "min": values[0], "max": values[-1]}
        if domain["rounding"] == "nearest":
            bounds, inner = grid_bounds(domain), domain
            return lambda labels: (
                np.searchsorted(bounds, _confined(labels, inner, default), side="right") - 1
            ).astype(np.uint64)
    if domain["kind"] == "integer":
        return lambda labels: _confined(labels, domain, default).view(np.uint64)
    if domain["kind"] == "real" and domain["rounding"] == "nearest":
        return _nearest_points(domain, default)
    if domain["kind"] in ("real", "grid") and domain["rounding"] == "unbiased":
        return lambda labels: (_confined(labels, domain, default) + 0.0).view(np.uint64)
    if domain["kind"] == "categorical":
        return category_rows(domain["values"], domain["values"].index(default))
    raise ValueError(f"unknown rounding {domain['rounding']!r}")


def places(domain: dict[str, Any]) -> Canonical:
    """The function from labels [n] of one column of a joint label to their places in its domain.

    Raises ValueError for a domain that no column of a joint label has.
    """
    canonical = canonical_labels(domain)
    if domain["kind"] == "integer":
        low = np.uint64(domain["min"] % 2**64)
        return lambda labels: canonical(labels) - low
    if domain["kind"] in ("real", "grid") and domain["rounding"] != "nearest":
        raise ValueError("a column of a joint label must be rounded to the nearest point")
    return canonical


def _confined(labels: NDArray[Any], domain: dict[str, Any], default: Any) -> NDArray[Any]:
    """Labels inside [min, max]; NaN fails every comparison, as in the graph."""
    low, high = (labels.dtype.type(domain[end]) for end in ("min", "max"))
    if default is None and labels.dtype.kind == "i":  # the same, several times as fast
        return np.minimum(np.maximum(labels, low), high)
    if default is None:
        raised = np.where(labels >= low, labels, low)
        return np.where(raised <= high, raised, high)
    fits = (labels >= low) & (labels <= high)
    return np.where(fits, labels, labels.dtype.type(default))


def _nearest_points(domain: dict[str, Any], default: Any) -> Canonical:
    low, last = float(domain["min"]), domain["points"] - 1
    points_per_unit = last / (float(domain["max"]) - low)

    def points(labels: NDArray[Any]) -> NDArray[np.uint64]:
        steps = (_confined(labels, domain, default) - low) * points_per_unit
        nearest: NDArray[np.float64] = np.floor(np.minimum(steps, float(last)) + 0.5)
        return nearest.astype(np.uint64)

    return points


def category_rows(values: list[Any], default_row: int) -> Canonical:
    """The function from categories [n] to their indices; what is not listed has ``default_row``.

    Of categories that are texts it takes codes: their indices, and their number for all others.
    """
    if isinstance(values[0], str):
        rows = np.append(np.arange(len(values)), default_row).astype(np.uint64)
        return lambda codes: rows[codes]
    known = np.array(values, dtype=np.int64)
    order = np.argsort(known)
    in_order = known[order]

    def integer_rows(labels: NDArray[Any]) -> NDArray[np.uint64]:
        place = np.minimum(np.searchsorted(in_order, labels), len(known) - 1)
        found = np.where(in_order[place] == labels, order[place], default_row)
        return found.astype(np.uint64)

    return integer_rows


_DIGITS = re.compile("[0-9a-f]+")
_NO_LABEL = "this is not a private label of the artifact"
_MOST_LABELS = 2**53  # of a range
_MOST_POINTS = 2**20  # of a grid, which is written out


class Sets:
    """The sets of an artifact: numbered 0 … m − 1, or the labels themselves, each a set of one."""

    def __init__(self, stated: dict[str, Any]) -> None:
        """From a certificate with ``sets``; ValueError, TypeError or KeyError if it is damaged."""
        self.labels = _labels(stated["label"]["domain"])
        texts = stated["sets"]["blocks"]
        if texts is None:
            self.blocks = None
            return
        if not isinstance(texts, list) or len(texts) != stated["outputs"] or not texts:
            raise ValueError("not one set per output")
        # One bit per label: the file's size bounds the number of labels.
        width = -(-len(self.labels) // 4)
        if not all(len(text) == width and _DIGITS.fullmatch(text) for text in texts):
            raise ValueError("a set whose number has the wrong digits")
        self.blocks = [int(text, 16) for text in texts]
        if any(block >> len(self.labels) for block in self.blocks):
            raise ValueError("a set with a class that does not exist")

    def members(self, output: object) -> list[object]:
        """The labels in a private label, in the order of the domain; ValueError if it is none."""
        if self.blocks is None:
            return [self.labels[_place(self.labels, output)]]
        try:
            number = index(output)  # type: ignore[arg-type]  # raises for what is no integer
        except TypeError:
            number = -1
        if isinstance(output, bool) or not 0 <= number < len(self.blocks):
            raise ValueError(f"private labels are the numbers of sets, 0 to {len(self.blocks) - 1}")
        block = self.blocks[number]
        return [label for i, label in enumerate(self.labels) if block >> i & 1]

    def matrix(self) -> NDArray[np.bool_]:
        """[m, k] whether a class is in a set."""
        k = len(self.labels)
        if self.blocks is None:
            return np.eye(k, dtype=bool)
        width = -(-k // 8)
        packed = b"".join(block.to_bytes(width, "little") for block in self.blocks)
        bits = np.frombuffer(packed, dtype=np.uint8).reshape(-1, width)
        return np.unpackbits(bits, axis=1, count=k, bitorder="little").astype(bool)


class Combinations(Sequence[Any]):
    """The labels of several columns: tuples, one label a column, the last column fastest."""

    def __init__(self, columns: Sequence[Sequence[Any]]) -> None:
        """From the labels of each column; ValueError if there are too many combinations."""
        self._columns = columns
        self._size = math.prod(map(len, columns))
        if self._size >= _MOST_LABELS:
            raise ValueError("too many combinations of labels")

    def __len__(self) -> int:
        """The number of combinations."""
        return self._size

    def __getitem__(self, number: Any) -> Any:
        """The combination of a number."""
        if not 0 <= number < self._size:
            raise IndexError("no combination of labels")
        found = []
        for values in reversed(self._columns):
            number, place = divmod(number, len(values))
            found.append(values[place])
        return tuple(reversed(found))

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The number of a combination; ValueError if it is none."""
        if not isinstance(value, tuple) or len(value) != len(self._columns):
            raise ValueError(_NO_LABEL)
        number = 0
        for label, values in zip(value, self._columns, strict=True):
            number = number * len(values) + _place(values, label)
        return number


def _place(labels: Sequence[Any], label: object) -> int:
    """Where a private label stands among the labels; ValueError if it is none of them."""
    if isinstance(labels, Combinations):
        return labels.index(label)
    known = isinstance(label, str | int | float | np.generic)  # no array is compared
    if not known or label not in labels:
        raise ValueError(_NO_LABEL)
    return labels.index(label)


def domain_size(domain: dict[str, Any]) -> int:
    """The number of labels of one column's domain, as a certificate states it."""
    if domain["kind"] in ("categorical", "grid"):
        return len(domain["values"])
    if domain["kind"] == "real":
        return int(domain["points"])
    return int(domain["max"]) - int(domain["min"]) + 1


def _labels(domain: dict[str, Any]) -> Sequence[Any]:
    if domain["kind"] == "joint":
        return Combinations([_labels(column) for column in domain["columns"]])
    if domain["kind"] == "categorical":
        return list(domain["values"])
    if domain_size(domain) > _MOST_LABELS:
        raise ValueError("a range of too many labels")
    if domain["kind"] == "real":
        return _grid(domain)
    if domain["kind"] == "grid":
        return list(map(float, grid_values(domain)))
    return range(domain["min"], domain["max"] + 1)


def _grid(domain: dict[str, Any]) -> list[float]:
    """The points of a real domain: the float64 nearest to each."""
    low, high, last = domain["min"], domain["max"], domain["points"] - 1
    if not 1 <= last < _MOST_POINTS or not math.isfinite(low) or not math.isfinite(high):
        raise ValueError("a grid of too many points, or of none")
    start, step = Fraction(low), (Fraction(high) - Fraction(low)) / last
    unit = math.lcm(start.denominator, step.denominator)
    first, stride = int(start * unit), int(step * unit)
    return [(first + j * stride) / unit for j in range(last + 1)]  # one rounding
