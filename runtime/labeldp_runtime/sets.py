"""Private labels that are sets of classes: which classes a set holds, as the certificate says.

A class is a label; where the label has several columns it is a tuple of labels, one a column.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.rules import grid_values

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
