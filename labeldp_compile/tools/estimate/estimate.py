"""Estimates from private labels: post-processing, which spends nothing.

Each table of an artifact has its own estimators. The estimate for rows of several tables is the
mean of the tables' estimates, weighted by their public numbers of rows. Its interval follows from
the intervals of the parts: the distance of an end from the estimate is the root of the sum of the
parts' squared distances (MOVER: Zou and Donner, *Construction of confidence limits about effect
measures*, 2008). For a population, the shares of the groups are unknown; they are estimated from
the rows, and their variance is added.

Rows of several artifacts are disjoint. The true labels of all rows are those of each artifact's
rows, so their estimates are weighted by rows, too. If each artifact's rows are a sample of one
population, every estimate is one of the same number; weights are then in proportion to the inverse
of the variance that it would have under uniform labels. Weights that the noisy labels decide would
prefer small estimates, because these have small variances, and so would be biased.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from labeldp_verify.analysis import project_to_simplex
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import CategoricalDomain, Category, JointDomain
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tools.estimate.cells import Cell, name_of
from labeldp_compile.tools.estimate.estimators import (
    HISTOGRAM,
    QUANTILES,
    Key,
    TableEstimators,
    require_any,
)
from labeldp_compile.tools.estimate.intervals import ALONE, MIN_ROWS, Confidence, Estimates, Target
from labeldp_compile.tools.estimate.inversion import LabelClasses, NotEstimableError
from labeldp_compile.tools.estimate.private_counts import GroupCounts

Floats = NDArray[np.float64]
HARDLY = math.log(1e-9)  # less likely events are not explained by chance
_LISTED = 4  # labels of a class
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles
_TINY = 1e-200
_TIE = 1e-9  # between shares: rounding of float64 decides nothing


@dataclass(frozen=True)
class Quantile:
    """Indices of classes; the interval is None if there are too few rows."""

    share: float
    estimate: int
    interval: tuple[int, int] | None


@dataclass(frozen=True)
class ColumnEstimates:
    """The estimates for one column of a label with several columns.

    Attributes:
        name: of the column.
        labels: [k_j] of the column.
        histogram: [k_j] their shares, unprojected.
        projected: [k_j] the nearest shares that are a distribution.
        mean: [1]; None for categories.
    """

    name: str
    labels: list[Category | float]
    histogram: Estimates
    projected: Floats
    mean: Estimates | None


@dataclass(frozen=True)
class GroupEstimates:
    """The estimates for one group; None for what the artifact does not support.

    Attributes:
        cell: its value in each column of the groups, None for nulls; () for all rows.
        rows: of the group.
        mean: [1].
        histogram: [c] shares of the classes, unprojected.
        projected: [c] the nearest shares that are a distribution.
        quantiles: one for each share.
        columns: the estimates for each column of a label with several columns.
    """

    cell: Cell
    rows: int
    mean: Estimates | None
    histogram: Estimates | None
    projected: Floats | None
    quantiles: list[Quantile] | None
    columns: list[ColumnEstimates] = field(default_factory=list)

    @property
    def name(self) -> Any:
        """How it is called, as of ``name_of``."""
        return name_of(self.cell)


@dataclass
class Estimation:
    """The estimators of one or several artifacts, for the tables that the rows use.

    Attributes:
        artifacts: verified, with one domain of labels.
        estimators: by the number of the table; those of several artifacts are numbered one after
            the other.
        refused: what cannot be estimated: mean, histogram, quantiles → the reason.
    """

    artifacts: tuple[Artifact, ...]
    estimators: dict[int, TableEstimators] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *artifacts: Artifact, tables: Iterable[int] = (0,)) -> Estimation:
        """Raises NotEstimableError if neither means nor histograms can be estimated."""
        self = cls(artifacts)
        for table in tables:
            place, own = self._places[table]
            artifact = artifacts[place]
            of = f"{artifact.certificate.name}: " if len(artifacts) > 1 else ""
            if artifact.groups.columns:
                of += f"group {artifact.groups.name(own)}: "
            try:
                found = TableEstimators.of(artifact.table(own))
            except NotEstimableError as error:
                raise NotEstimableError(f"{of}{error}") from None
            self.estimators[table] = found
            for what, reason in found.refused.items():
                self.refused.setdefault(what, f"{of}{reason}")
        first = self.classes.of_label
        if any((found.classes.of_label != first).any() for found in self.estimators.values()):
            reason = "the artifacts" if len(artifacts) > 1 else "its groups"
            reason += " distinguish different classes of labels"
            for what in ("histogram", "quantiles"):
                self.refused.setdefault(what, reason)
        require_any(self.refused)
        return self

    @property
    def table(self) -> Table:
        """The table of all rows that are in no listed group; its domain is that of all tables."""
        first = self.artifacts[0]
        return first.table(first.groups.own_tables)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """Of each table the artifact that it belongs to, and its number there."""
        return [
            (place, table)
            for place, artifact in enumerate(self.artifacts)
            for table in range(len(artifact.tables))
        ]

    @property
    def classes(self) -> LabelClasses:
        """The classes of labels that every table distinguishes, if there is a histogram."""
        return next(iter(self.estimators.values())).classes

    def class_names(self) -> list[str]:
        """Each class in words: its label, the ends of neighbours, or the labels themselves."""
        return [self._class_name(number) for number in range(self.classes.count)]

    def _class_name(self, number: int) -> str:
        domain = self.table.domain
        members = np.flatnonzero(self.classes.of_label == number).tolist()
        names = [domain.name(domain.listed[y]) for y in members[:_LISTED]]
        neighbours = len(members) == members[-1] - members[0] + 1 > 1
        if neighbours and not isinstance(domain, CategoricalDomain):
            return f"{names[0]} … {domain.listed[members[-1]]}"
        more = len(members) - _LISTED
        return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")

    def __call__(
        self,
        groups: Sequence[GroupCounts],
        target: Target,
        observer: Observer = QUIET,
        confidence: Confidence = ALONE,
    ) -> list[GroupEstimates]:
        """The estimates of each group; the observer gets the rows of each finished group."""
        found = []
        for group in groups:
            found.append(self._of(group, target, confidence))
            observer.rows(group.rows)
        return found

    def intervals(self, groups: Sequence[GroupCounts]) -> int:
        """How many intervals these groups have, which no label decides."""
        sizes = {
            key: len(SHARES) if key == QUANTILES else each.size
            for found in self.estimators.values()
            for key, each in found.found.items()
            if self.is_given(key)
        }
        return sum(sizes.values()) * sum(group.rows >= MIN_ROWS for group in groups)

    def hardly_private(self, group: GroupCounts) -> set[int]:
        """The places of artifacts with estimates that are impossible, by more than chance."""
        unlikely = set()
        for table, counts in group.by_table.items():
            found = self.estimators[table].log_chances(counts)
            if min(found) + math.log(len(group.by_table) * len(found)) < HARDLY:
                unlikely.add(self._places[table][0])
        return unlikely

    def is_given(self, key: Key) -> bool:
        """Whether these artifacts support an estimate."""
        what, column = key
        return column is not None or what not in self.refused

    def _of(self, group: GroupCounts, target: Target, confidence: Confidence) -> GroupEstimates:
        by_artifact: dict[int, list[int]] = {}
        for table in group.by_table:
            by_artifact.setdefault(self._places[table][0], []).append(table)
        parts = {
            table: self.estimators[table](counts, target, confidence)
            for table, counts in group.by_table.items()
        }
        rows = {table: counts.rows for table, counts in group.by_table.items()}
        samples = np.array([sum(map(rows.__getitem__, own)) for own in by_artifact.values()])
        found = {}
        for key in filter(self.is_given, next(iter(parts.values()))):
            if not all(key in part for part in parts.values()):
                continue
            of_samples, noise = [], []
            for own, n in zip(by_artifact.values(), samples.tolist(), strict=True):
                weights = np.array([rows[table] for table in own])[:, None] / n
                between = 1 / n if target == "population" else 0.0
                values = [parts[table][key] for table in own]
                of_samples.append(_together(values, weights, confidence, between))
                if len(by_artifact) > 1 and target == "population":
                    each = [self.estimators[table].found[key].under_uniform for table in own]
                    noise.append((weights * np.array(each)).sum(axis=0))
            weights = samples[:, None] / (np.maximum(np.array(noise), _TINY) if noise else 1.0)
            weights = weights / weights.sum(axis=0)
            together = _together(of_samples, weights, confidence)
            enough = group.rows >= MIN_ROWS
            found[key] = together if enough else together.without_intervals()
        near = {
            key: project_to_simplex(e.value) for key, e in found.items() if key[0] == "histogram"
        }
        cumulative, projected = found.get(QUANTILES), near.get(HISTOGRAM)
        return GroupEstimates(
            group.cell,
            group.rows,
            found.get(("mean", None)),
            found.get(HISTOGRAM),
            projected,
            None if cumulative is None or projected is None else quantiles(cumulative, projected),
            [
                ColumnEstimates(name, labels, found[key], near[key], found.get(("mean", name)))
                for name, labels in self.label_columns()
                if (key := ("histogram", name)) in found
            ],
        )

    def label_columns(self) -> list[tuple[str, list[Category | float]]]:
        """The columns of a label with several columns, by name, with their labels."""
        domain = self.table.domain
        if not isinstance(domain, JointDomain):
            return []
        names = self.table.certificate.label_columns
        return [(name, list(part.listed)) for name, part in zip(names, domain.parts, strict=True)]


def quantiles(cumulative: Estimates, projected: Floats) -> list[Quantile]:
    """From estimates [c − 1] of Pr[class ≤ j] and the projected histogram [c].

    This inverts bounds of the distribution function F (Woodruff 1952), point by point. The quantile
    of a share q is the smallest label y with F(y) ≥ q. Label y is excluded if F(y) < q, or if F
    just below y is ≥ q, beyond the noise. For the true quantile, each happens with a probability of
    2.5%. The interval is the hull of the remaining labels.
    """
    at_most = projected.cumsum()
    found = []
    for share in SHARES:
        estimate = min(int(np.searchsorted(at_most, share - _TIE)), len(projected) - 1)
        interval = None
        if not np.isnan(cumulative.low).any():
            reached = np.append(cumulative.high >= share, True)
            not_before = np.append(True, cumulative.low < share)
            # If bounds cross, no label remains but the estimate.
            left = [*np.flatnonzero(reached & not_before).tolist(), estimate]
            interval = (min(left), max(left))
        found.append(Quantile(share, estimate, interval))
    return found


def _together(
    parts: Sequence[Estimates], weights: Floats, confidence: Confidence, between: float = 0.0
) -> Estimates:
    """Estimates [j] of a mean over all rows, from independent estimates of parts.

    ``weights`` are [p, 1] or [p, j]. ``between`` is the factor of the variance between the parts,
    if their shares are estimated by the weights.
    """
    if len(parts) == 1:
        return parts[0]
    values, errors = (np.array([getattr(p, name) for p in parts]) for name in ("value", "error"))
    value, z = (weights * values).sum(axis=0), confidence.z
    apart = between * (weights * (values - value) ** 2).sum(axis=0)
    ends = []
    for name, side in (("low", -1), ("high", 1)):
        reach = np.abs(np.array([getattr(p, name) for p in parts]) - values)
        ends.append(value + side * np.sqrt(((weights * reach) ** 2).sum(axis=0) + z**2 * apart))
    error = np.sqrt(((weights * errors) ** 2).sum(axis=0) + apart)
    return Estimates(value, error, *ends)
