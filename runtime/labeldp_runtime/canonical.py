"""The canonical label: 64 bits that stand for all labels that the artifact cannot tell apart.

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
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.rules import Rules, grid_bounds, grid_values

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
