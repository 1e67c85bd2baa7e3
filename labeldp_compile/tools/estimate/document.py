"""Estimates as JSON."""

from __future__ import annotations

import math
from typing import Any

from labeldp_verify.opening import readable

from labeldp_compile.tools.estimate.estimate import (
    ColumnEstimates,
    Estimation,
    GroupEstimates,
    Quantile,
)
from labeldp_compile.tools.estimate.intervals import CONFIDENCE, Target

FORMAT_VERSION = "1.0"


def estimates_json(
    estimation: Estimation, found: list[GroupEstimates], target: Target
) -> dict[str, Any]:
    """``{format_version, artifact, target, confidence, classes, refused, groups}``; for a label of
    several columns, a group also has ``columns``.

    Classes are lists of labels; histograms have the same order. The first group is all rows.
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


def _group(group: GroupEstimates, members: list[list[Any]]) -> dict[str, Any]:
    # JSON has no infinite numbers.
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
    """The shares of a group or a column that has a histogram."""
    assert found.histogram is not None and found.projected is not None
    projected = enumerate(found.projected.tolist())
    return [{**found.histogram.at(i), "projected": share} for i, share in projected]
