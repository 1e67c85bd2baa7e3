"""Estimates as JSON."""

import math
from typing import Any

from labeldp_verify.opening import readable

from labeldp_compile.tools.estimate.cells import in_words
from labeldp_compile.tools.estimate.estimate import (
    ColumnEstimates,
    Estimation,
    GroupEstimates,
    Quantile,
)
from labeldp_compile.tools.estimate.intervals import CONFIDENCE, Confidence, Target

FORMAT_VERSION = "1.0"


def members_of_classes(estimation: Estimation) -> list[list[Any]]:
    """The labels of each class, as people write them."""
    classes = estimation.classes
    members: list[list[Any]] = [[] for _ in range(classes.count)]
    listed = readable(estimation.table).domain.listed
    for label, number in zip(listed, classes.of_label.tolist(), strict=True):
        members[number].append(label)
    return members


def estimates_json(
    estimation: Estimation,
    found: list[GroupEstimates],
    by: list[str],
    target: Target,
    confidence: Confidence,
) -> dict[str, Any]:
    """``{format_version, artifact, artifacts, by, target, confidence, simultaneous, classes,
    refused, groups}``; for a label of several columns, a group also has ``columns``.

    Classes are lists of labels; histograms have the same order. The first group is all rows. A
    group of several columns ``by`` is the list of its values. ``simultaneous`` is the number of
    intervals that hold at once, null if each is for itself.
    """
    members = members_of_classes(estimation)
    names = [artifact.certificate.name for artifact in estimation.artifacts]
    return {
        "format_version": FORMAT_VERSION,
        "artifact": names[0],
        "artifacts": names,
        "by": by,
        "target": target,
        "confidence": CONFIDENCE,
        "simultaneous": confidence.together or None,
        "classes": None if "histogram" in estimation.refused else members,
        "refused": estimation.refused,
        "groups": [_group(group, members) for group in found],
    }


def _group(group: GroupEstimates, members: list[list[Any]]) -> dict[str, Any]:
    stated = {
        "group": plain(group.name),
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


def plain(name: Any) -> Any:
    """A name as JSON has it, which knows no infinite numbers."""
    if isinstance(name, tuple):
        return [plain(value) for value in name]
    known = math.isfinite(name) if isinstance(name, float) else isinstance(name, str | int | None)
    return name if known else in_words(name)


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
