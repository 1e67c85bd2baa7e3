"""Estimates as JSON, and the names of classes of labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain
from labeldp_verify.opening import readable

from labeldp_compile.tools.estimate.columns import ColumnEstimates
from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates
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
    labels = list(decoded.domain.listed)
    members: list[list[Any]] = [[] for _ in range(classes.count)]
    for label, number in zip(labels, classes.of_label.tolist(), strict=True):
        members[number].append(label)
    histogram = "histogram" not in estimation.refused
    return {
        "format_version": FORMAT_VERSION,
        "artifact": decoded.certificate.name,
        "target": target,
        "confidence": CONFIDENCE,
        "classes": members if histogram else None,
        "refused": estimation.refused,
        "groups": [_group(estimation, group, members) for group in found],
    }


def class_name(decoded: Table, classes: LabelClasses, number: int) -> str:
    """A class in words: its label, the ends of neighbours, or the labels themselves."""
    first, last = int(classes.first[number]), int(classes.last[number])
    names = [_name(decoded.domain, y) for y in (first, last)]
    if first == last:
        return names[0]
    members = np.flatnonzero(classes.of_label == number)
    if len(members) == last - first + 1 and not isinstance(decoded.domain, CategoricalDomain):
        return f"{names[0]} … {names[1]}"
    listed = [_name(decoded.domain, int(y)) for y in members[:_LISTED]]
    more = len(members) - len(listed)
    return ", ".join(listed) + (f" and {more:,} more" if more else "")


def _name(domain: Domain, index: int) -> str:
    """A label, or a combination by the labels of its columns."""
    return domain.name(index) if isinstance(domain, JointDomain) else str(domain.listed[index])


def _group(
    estimation: Estimation, group: GroupEstimates, members: list[list[Any]]
) -> dict[str, Any]:
    histogram, found = None, None
    if group.histogram is not None and group.projected is not None:
        histogram = [
            {**group.histogram.at(i), "projected": float(group.projected[i])}
            for i in range(estimation.classes.count)
        ]
    if group.quantiles is not None:
        found = [
            {
                "share": q.share,
                "estimate": [members[q.estimate][0], members[q.estimate][-1]],
                "interval": q.interval and [members[q.interval[0]][0], members[q.interval[1]][-1]],
            }
            for q in group.quantiles
        ]
    stated = {
        "group": _group_name(group.name),
        "rows": group.rows,
        "mean": None if group.mean is None else group.mean.at(0),
        "quantiles": found,
        "histogram": histogram,
    }
    if group.columns:
        stated["columns"] = [_column(column) for column in group.columns]
    return stated


def _column(column: ColumnEstimates) -> dict[str, Any]:
    """One column of a joint label."""
    shares = enumerate(zip(column.labels, column.projected.tolist(), strict=True))
    return {
        "column": column.name,
        "mean": None if column.mean is None else column.mean.at(0),
        "histogram": [
            {"label": label, **column.histogram.at(i), "projected": share}
            for i, (label, share) in shares
        ],
    }


def _group_name(name: Any) -> Any:
    """As JSON can hold it: there are no infinite numbers."""
    plain = isinstance(name, str | int | None) or (isinstance(name, float) and math.isfinite(name))
    return name if plain else str(name)
