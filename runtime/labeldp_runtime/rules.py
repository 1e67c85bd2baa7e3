"""A certificate's rules for what is no label of its domain: other values, and nulls.

Without a rule of their own, nulls follow the rule for other values, and become the lowest label
where numbers are clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rules:
    """What a column's domain says of other values.

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
