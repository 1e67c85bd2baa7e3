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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import CategoricalDomain, Category, JointDomain
from numpy.typing import NDArray

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.estimators import (
    HISTOGRAM,
    QUANTILES,
    Key,
    OutputCounts,
    TableEstimators,
    require_any,
)
from labeldp_learn.intervals import ALONE, MIN_ROWS, Confidence, Estimates, Target
from labeldp_learn.inversion import Floats, LabelClasses, project_to_simplex

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles
HARDLY = math.log(1e-9)  # less likely events are not explained by chance
ALL_ROWS = "all rows"
Cell = tuple[Any, ...]
"""The value of a group of rows in each column that makes groups; () of all rows."""
_LISTED = 4  # labels of a class
_TINY = 1e-200
_TIE = 1e-9  # between shares: rounding of float64 decides nothing


@dataclass(frozen=True)
class GroupCounts:
    """Rows that are estimated together.

    Attributes:
        cell: their value in each column of the groups, None for nulls; () for all rows.
        by_table: their outputs, by table. The tables of several artifacts are numbered one after
            the other.
    """

    cell: Cell
    by_table: Mapping[int, OutputCounts]

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return sum(counted.rows for counted in self.by_table.values())


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
        """All rows, the value of the only column of groups, or the values of several."""
        return ALL_ROWS if not self.cell else self.cell[0] if len(self.cell) == 1 else self.cell


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
        """Raises PrivateLabelError if neither means nor histograms can be estimated."""
        self = cls(artifacts)
        for table in tables:
            position, number = self._positions[table]
            artifact = artifacts[position]
            of = f"{artifact.certificate.name}: " if len(artifacts) > 1 else ""
            if artifact.groups.columns:
                of += f"group {artifact.groups.name(number)}: "
            try:
                estimators = TableEstimators.of(artifact.table(number))
            except PrivateLabelError as error:
                raise PrivateLabelError(f"{of}{error}") from None
            self.estimators[table] = estimators
            for what, reason in estimators.refused.items():
                self.refused.setdefault(what, f"{of}{reason}")
        first = self.classes.of_label
        if any((each.classes.of_label != first).any() for each in self.estimators.values()):
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
    def _positions(self) -> list[tuple[int, int]]:
        """Of each table the artifact that it belongs to, and its number there."""
        return [
            (position, table)
            for position, artifact in enumerate(self.artifacts)
            for table in range(len(artifact.tables))
        ]

    @property
    def classes(self) -> LabelClasses:
        """The classes of labels that every table distinguishes, if there is a histogram."""
        return next(iter(self.estimators.values())).classes

    def class_members(self) -> list[NDArray[np.int64]]:
        """The indices of the labels of each class."""
        return [np.flatnonzero(self.classes.of_label == i) for i in range(self.classes.count)]

    def class_names(self) -> list[str]:
        """Each class in words: its label, the ends of neighbours, or the labels themselves."""
        domain = self.table.domain
        names = []
        for members in map(np.ndarray.tolist, self.class_members()):
            listed = [domain.name(domain.listed[y]) for y in members[:_LISTED]]
            neighbours = len(members) == members[-1] - members[0] + 1 > 1
            if neighbours and not isinstance(domain, CategoricalDomain):
                names.append(f"{listed[0]} … {domain.listed[members[-1]]}")
            else:
                more = len(members) - _LISTED
                names.append(", ".join(listed) + (f" and {more:,} more" if more > 0 else ""))
        return names

    def label_columns(self) -> list[tuple[str, list[Category | float]]]:
        """The columns of a label with several columns, by name, with their labels."""
        domain = self.table.domain
        if not isinstance(domain, JointDomain):
            return []
        names = self.table.certificate.label_columns
        return [(name, list(part.listed)) for name, part in zip(names, domain.parts, strict=True)]

    def __call__(
        self,
        groups: Sequence[GroupCounts],
        target: Target,
        confidence: Confidence = ALONE,
        progress: Callable[[int], None] = lambda rows: None,
    ) -> list[GroupEstimates]:
        """The estimates of each group; ``progress`` gets the rows of each finished group."""
        estimates = []
        for group in groups:
            estimates.append(self._of_group(group, target, confidence))
            progress(group.rows)
        return estimates

    def intervals(self, groups: Sequence[GroupCounts]) -> int:
        """How many intervals these groups have, which no label decides."""
        sizes = {
            key: len(SHARES) if key == QUANTILES else each.size
            for table in self.estimators.values()
            for key, each in table.estimators.items()
            if self.is_given(key)
        }
        return sum(sizes.values()) * sum(group.rows >= MIN_ROWS for group in groups)

    def hardly_private(self, group: GroupCounts) -> set[int]:
        """The positions of artifacts with estimates that are impossible, by more than chance."""
        unlikely = set()
        for table, counts in group.by_table.items():
            chances = self.estimators[table].log_chances(counts)
            if min(chances) + math.log(len(group.by_table) * len(chances)) < HARDLY:
                unlikely.add(self._positions[table][0])
        return unlikely

    def is_given(self, key: Key) -> bool:
        """Whether these artifacts support an estimate."""
        what, column = key
        return column is not None or what not in self.refused

    def _of_group(
        self, group: GroupCounts, target: Target, confidence: Confidence
    ) -> GroupEstimates:
        parts = {
            table: self.estimators[table](counts, target, confidence)
            for table, counts in group.by_table.items()
        }
        estimates = {}
        for key in filter(self.is_given, next(iter(parts.values()))):
            if all(key in part for part in parts.values()):
                of_tables = {table: part[key] for table, part in parts.items()}
                whole = self._of_all_tables(key, of_tables, group, target, confidence)
                estimates[key] = whole if group.rows >= MIN_ROWS else whole.without_intervals()
        near = {
            key: project_to_simplex(each.value)
            for key, each in estimates.items()
            if key[0] == "histogram"
        }
        cumulative, projected = estimates.get(QUANTILES), near.get(HISTOGRAM)
        return GroupEstimates(
            group.cell,
            group.rows,
            estimates.get(("mean", None)),
            estimates.get(HISTOGRAM),
            projected,
            None if cumulative is None or projected is None else quantiles(cumulative, projected),
            [
                ColumnEstimates(
                    name, labels, estimates[key], near[key], estimates.get(("mean", name))
                )
                for name, labels in self.label_columns()
                if (key := ("histogram", name)) in estimates
            ],
        )

    def _of_all_tables(
        self,
        key: Key,
        parts: Mapping[int, Estimates],
        group: GroupCounts,
        target: Target,
        confidence: Confidence,
    ) -> Estimates:
        """One estimate of all rows from those of the tables: by artifact, then of all artifacts."""
        tables_of: dict[int, list[int]] = {}
        for table in parts:
            tables_of.setdefault(self._positions[table][0], []).append(table)
        samples, rows, noise = [], [], []
        for tables in tables_of.values():
            counted = np.array([group.by_table[table].rows for table in tables])
            n = int(counted.sum())
            shares = counted[:, None] / n
            between = 1 / n if target == "population" else 0.0
            each = [parts[table] for table in tables]
            samples.append(_weighted_mean(each, shares, confidence, between))
            rows.append(n)
            if len(tables_of) > 1 and target == "population":
                spread = [self.estimators[table].estimators[key].under_uniform for table in tables]
                noise.append((shares * np.array(spread)).sum(axis=0))
        weights = np.array(rows)[:, None] / (np.maximum(np.array(noise), _TINY) if noise else 1.0)
        return _weighted_mean(samples, weights / weights.sum(axis=0), confidence)


def quantiles(cumulative: Estimates, projected: Floats) -> list[Quantile]:
    """From estimates [c − 1] of Pr[class ≤ j] and the projected histogram [c].

    This inverts bounds of the distribution function F (Woodruff 1952), point by point. The quantile
    of a share q is the smallest label y with F(y) ≥ q. Label y is excluded if F(y) < q, or if F
    just below y is ≥ q, beyond the noise. For the true quantile, each happens with a probability of
    2.5%. The interval is the hull of the remaining labels.
    """
    at_most = projected.cumsum()
    results = []
    for share in SHARES:
        estimate = min(int(np.searchsorted(at_most, share - _TIE)), len(projected) - 1)
        interval = None
        if not np.isnan(cumulative.low).any():
            reached = np.append(cumulative.high >= share, True)
            not_before = np.append(True, cumulative.low < share)
            # If bounds cross, no label remains but the estimate.
            left = [*np.flatnonzero(reached & not_before).tolist(), estimate]
            interval = (min(left), max(left))
        results.append(Quantile(share, estimate, interval))
    return results


def _weighted_mean(
    parts: Sequence[Estimates], weights: Floats, confidence: Confidence, between: float = 0.0
) -> Estimates:
    """Estimates [j] of a mean over all rows, from independent estimates of parts.

    ``weights`` are [p, 1] or [p, j]. ``between`` is the factor of the variance between the parts,
    if their shares are estimated by the weights.
    """
    if len(parts) == 1:
        return parts[0]
    values, errors, low, high = (
        np.array([getattr(part, name) for part in parts])
        for name in ("value", "error", "low", "high")
    )
    value = (weights * values).sum(axis=0)
    apart = between * (weights * (values - value) ** 2).sum(axis=0)
    ends = [
        value
        + side
        * np.sqrt(((weights * np.abs(end - values)) ** 2).sum(axis=0) + confidence.z**2 * apart)
        for end, side in ((low, -1), (high, 1))
    ]
    return Estimates(value, np.sqrt(((weights * errors) ** 2).sum(axis=0) + apart), *ends)


def hardly_private(artifact: Artifact, counts: Mapping[int, OutputCounts]) -> bool:
    """Whether private labels make estimates that are impossible, by more than chance.

    ``counts`` are those of the rows of each table. False if the artifact supports no estimate.
    """
    try:
        estimation = Estimation.of(artifact, tables=counts)
    except PrivateLabelError:
        return False
    return bool(estimation.hardly_private(GroupCounts((), counts)))
