"""Labels of several columns, taken as one: every combination of their values is a label.

Combinations are numbered 0 … K − 1, the last column fastest. They have no order. For the analysis a
joint label is a category, the number of its combination; only the graph and messages for people use
the columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.domain import (
    CategoricalDomain,
    Category,
    Domain,
    IntegerDomain,
    N,
    RealDomain,
    missing_label,
    strides_of,
)

MAX_LABEL_COLUMNS, MAX_COMBINATIONS = 8, 1_000_000
_MARKS = frozenset('&,"\\')
Part = IntegerDomain | RealDomain | CategoricalDomain
"""The domain of one column; real ones round to the nearest point."""


@dataclass(frozen=True)
class JointDomain(CategoricalDomain):
    """The combinations of the labels of several columns, as the categories 0 … K − 1.

    ``default`` is the combination that a row of nothing but nulls becomes; each column treats what
    lies outside its own domain by its own rule.
    """

    parts: tuple[Part, ...] = ()

    kind = "joint"

    @classmethod
    def of(cls, parts: Sequence[Part]) -> JointDomain:
        """Of the columns' domains, in their order. Raises ValueError if they cannot be joined."""
        if not 2 <= len(parts) <= MAX_LABEL_COLUMNS:
            raise ValueError(f"a joint label has 2 to {MAX_LABEL_COLUMNS} columns")
        if any(part.words_per_label != 1 for part in parts):
            raise ValueError("a column of a joint label must be rounded to the nearest point")
        if any(part.keeps_nulls for part in parts):
            raise ValueError("only a label of one column can keep its nulls")
        size = math.prod(part.size for part in parts)
        if size > MAX_COMBINATIONS:
            raise ValueError(f"the columns combine to more than {MAX_COMBINATIONS:,} labels")
        default = 0
        for part in parts:
            default = default * part.size + place_of(part, missing_label(part))
        return cls(tuple(range(size)), default, parts=tuple(parts))

    @cached_property
    def strides(self) -> list[int]:
        """By how much the place of each column moves the number of a combination."""
        return strides_of([part.size for part in self.parts])

    def places_of(self, number: N) -> list[N]:
        """The place of each column in the combination of a number, or the [n] of numbers [n]."""
        columns = zip(self.parts, self.strides, strict=True)
        return [number // stride % part.size for part, stride in columns]

    def combination(self, number: int) -> tuple[Category | float, ...]:
        """The labels of the columns in the combination of a number, as outputs."""
        places = zip(self.column_values, self.places_of(number), strict=True)
        return tuple(values[place] for values, place in places)

    def name(self, value: Category) -> str:
        """A combination for people: its labels, as in ``yes & 3``. Labels with special characters
        are quoted as in JSON, so that no two look alike.
        """
        return " & ".join(map(_plain, self.combination(int(value))))

    @cached_property
    def column_values(self) -> list[list[Category | float]]:
        """By column the outputs [k_j]: float64 numbers in increasing order, or the categories."""
        return [output_values(part) for part in self.parts]

    def to_json(self) -> dict[str, Any]:
        """The domain as the certificate states it."""
        return {"kind": self.kind, "columns": [part.to_json() for part in self.parts]}


def _plain(label: Category | float) -> str:
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else repr(label)
    text = str(label)
    return text if text and text == text.strip() and not set(text) & _MARKS else json.dumps(text)


def columns_of(domain: Domain) -> tuple[Part, ...]:
    """The domains of a label's columns: one, but for a joint label."""
    if isinstance(domain, JointDomain):
        return domain.parts
    return (domain,)


def output_array(values: Sequence[Category | float]) -> NDArray[Any]:
    """Outputs [n] as an array: text as objects."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def output_values(domain: Domain) -> list[Category | float]:
    """[k] the labels as outputs: float64 numbers in increasing order, or the categories."""
    if isinstance(domain, CategoricalDomain):
        return list(domain.values)
    return [float(label) for label in domain.listed]


def place_of(domain: Part, label: Category | float, rounding_word: int = 0) -> int:
    """The place of any label in a domain, as the graph finds it."""
    if isinstance(domain, CategoricalDomain):
        known = label in domain.values
        return domain.values.index(label if known else domain.default)
    if isinstance(domain, IntegerDomain):
        assert isinstance(label, int)
        if domain.default is not None and not domain.min <= label <= domain.max:
            label = domain.default
        return min(max(label, domain.min), domain.max) - domain.min
    return domain.index(float(label), rounding_word)
