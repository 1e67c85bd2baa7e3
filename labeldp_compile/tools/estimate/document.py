"""Estimates as JSON, and the names of classes of labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain
from labeldp_verify.opening import readable

from labeldp_compile.tools.estimate.estimate import (
    ColumnEstimates,
    Estimation,
    GroupEstimates,
    Quantile,
)
from labeldp_compile.tools.estimate.intervals import CONFIDENCE, Target
from labeldp_compile.tools.estimate.inversion import LabelClasses

FORMAT_VERSION = "1.0"
_LISTED = 4


def estimates_json(
    estimation: Estimation, found: list[GroupEstimates], target: Target
) -> dict[str, Any]:
    """``{format_version, artifact, target, confidence, classes, refused, groups}``; of a joint
    label a group has ``columns``, too.

    Classes are lists of labels; those of a histogram stand in the same order. The first group is
    all rows.
    """
    decoded, classes = readable(estimation.table), estimation.classes
    members: list[list[Any]] = [[] for _ in range(classes.count)]
    for label, number in zip(decoded.domain.listed, classes.of_label.tolist(), strict=True):
        members[number].append(label)
    return {
        "format_version": FORMAT_VERSION,
        "artifact": decoded.certificate.name,
        "target": target,
        "confidence": CONFIDENCE,
        "classes": None if "histogram" in estimation.refused else members,
        "refused": estimation.refused,
        "groups": [_group(group, members) for group in found],
    }


def class_name(decoded: Table, classes: LabelClasses, number: int) -> str:
    """A class in words: its label, the ends of neighbours, or the labels themselves."""
    members = np.flatnonzero(classes.of_label == number).tolist()
    first, last = members[0], members[-1]
    neighbours = len(members) == last - first + 1 > 1
    if neighbours and not isinstance(decoded.domain, CategoricalDomain):
        return f"{_name(decoded.domain, first)} … {_name(decoded.domain, last)}"
    listed = ", ".join(_name(decoded.domain, y) for y in members[:_LISTED])
    more = len(members) - _LISTED
    return listed + (f" and {more:,} more" if more > 0 else "")


def _name(domain: Domain, index: int) -> str:
    """A label, or a combination by the labels of its columns."""
    return domain.name(index) if isinstance(domain, JointDomain) else str(domain.listed[index])


def _group(group: GroupEstimates, members: list[list[Any]]) -> dict[str, Any]:
    # As JSON can hold it: there are no infinite numbers.
    name, plain = group.name, isinstance(group.name, str | int | None)
    if isinstance(name, float):
        plain = math.isfinite(name)
    stated = {
        "group": name if plain else str(name),
        "rows": group.rows,
        "mean": group.mean and group.mean.at(0),
        "quantiles": [_quantile(q, members) for q in group.quantiles] if group.quantiles else None,
        "histogram": group.histogram and _shares(group),
    }
    if group.columns:
        stated["columns"] = [
            {
                "column": column.name,
                "mean": column.mean and column.mean.at(0),
                "histogram": [
                    {"label": label, **share}
                    for label, share in zip(column.labels, _shares(column), strict=True)
                ],
            }
            for column in group.columns
        ]
    return stated


def _quantile(found: Quantile, members: list[list[Any]]) -> dict[str, Any]:
    def ends(low: int, high: int) -> list[Any]:
        return [members[low][0], members[high][-1]]

    return {
        "share": found.share,
        "estimate": ends(found.estimate, found.estimate),
        "interval": found.interval and ends(*found.interval),
    }


def _shares(found: GroupEstimates | ColumnEstimates) -> list[dict[str, Any]]:
    """Of a group or a column that has a histogram."""
    assert found.histogram is not None and found.projected is not None
    projected = enumerate(found.projected.tolist())
    return [{**found.histogram.at(i), "projected": share} for i, share in projected]
