"""Estimates from private labels: post-processing, which spends nothing.

Each table of an artifact has its own estimators. The estimate for rows of several tables is the
mean of the tables' estimates, weighted by their public numbers of rows. Its interval follows from
the intervals of the parts: the distance of an end from the estimate is the root of the sum of the
parts' squared distances (MOVER: Zou and Donner, *Construction of confidence limits about effect
measures*, 2008). For a population, the shares of the groups are unknown; they are estimated from
the rows, and their variance is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from labeldp_verify.analysis import project_to_simplex
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import CategoricalDomain, Category, JointDomain
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tools.estimate.estimators import (
    HISTOGRAM,
    QUANTILES,
    TableEstimators,
    require_any,
)
from labeldp_compile.tools.estimate.intervals import MIN_ROWS, Estimates, Target, Z
from labeldp_compile.tools.estimate.inversion import LabelClasses, NotEstimableError
from labeldp_compile.tools.estimate.private_counts import GroupCounts

Floats = NDArray[np.float64]
HARDLY = math.log(1e-9)  # less likely events are not explained by chance
_LISTED = 4  # labels of a class
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles
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
        name, rows: of the group.
        mean: [1].
        histogram: [c] shares of the classes, unprojected.
        projected: [c] the nearest shares that are a distribution.
        quantiles: one for each share.
        columns: the estimates for each column of a label with several columns.
    """

    name: Any
    rows: int
    mean: Estimates | None
    histogram: Estimates | None
    projected: Floats | None
    quantiles: list[Quantile] | None
    columns: list[ColumnEstimates] = field(default_factory=list)


@dataclass
class Estimation:
    """The estimators of an artifact, for the tables that the rows use.

    Attributes:
        artifact: verified.
        estimators: by the number of the table.
        refused: what cannot be estimated: mean, histogram, quantiles → the reason.
    """

    artifact: Artifact
    estimators: dict[int, TableEstimators] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, artifact: Artifact, tables: Iterable[int] = (0,)) -> Estimation:
        """Raises NotEstimableError if neither means nor histograms can be estimated."""
        self = cls(artifact)
        for table in tables:
            of = f"group {artifact.groups.name(table)}: " if artifact.groups.columns else ""
            try:
                found = TableEstimators.of(artifact.table(table))
            except NotEstimableError as error:
                raise NotEstimableError(f"{of}{error}") from None
            self.estimators[table] = found
            for what, reason in found.refused.items():
                self.refused.setdefault(what, f"{of}{reason}")
        first = self.classes.of_label
        if any((found.classes.of_label != first).any() for found in self.estimators.values()):
            reason = "its groups distinguish different classes of labels"
            for what in ("histogram", "quantiles"):
                self.refused.setdefault(what, reason)
        require_any(self.refused)
        return self

    @property
    def table(self) -> Table:
        """The table of all rows that are in no listed group; its domain is that of all tables."""
        return self.artifact.table(self.artifact.groups.own_tables)

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
        if isinstance(domain, JointDomain):
            names = [domain.name(y) for y in members[:_LISTED]]
        else:
            names = [str(domain.listed[y]) for y in members[:_LISTED]]
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
    ) -> list[GroupEstimates]:
        """The estimates of each group; the observer gets the rows of each finished group."""
        found = []
        for group in groups:
            found.append(self._of(group, target))
            observer.rows(group.rows)
        return found

    def are_hardly_private(self, group: GroupCounts) -> bool:
        """Whether the estimates of a table are impossible, by more than chance explains."""
        for table, counts in group.by_table.items():
            found = self.estimators[table].log_chances(counts)
            if min(found) + math.log(len(group.by_table) * len(found)) < HARDLY:
                return True
        return False

    def _of(self, group: GroupCounts, target: Target) -> GroupEstimates:
        parts = [self.estimators[table](counts, target) for table, counts in group.by_table.items()]
        rows = np.array([counts.rows for counts in group.by_table.values()])
        found = {
            (what, column): _together([part[what, column] for part in parts], rows, target)
            for what, column in parts[0]
            if all((what, column) in part for part in parts)
            and (column is not None or what not in self.refused)
        }
        near = {
            key: project_to_simplex(e.value) for key, e in found.items() if key[0] == "histogram"
        }
        cumulative, projected = found.get(QUANTILES), near.get(HISTOGRAM)
        return GroupEstimates(
            group.name,
            group.rows,
            found.get(("mean", None)),
            found.get(HISTOGRAM),
            projected,
            None if cumulative is None or projected is None else quantiles(cumulative, projected),
            [
                ColumnEstimates(name, labels, found[key], near[key], found.get(("mean", name)))
                for name, labels in self._columns()
                if (key := ("histogram", name)) in found
            ],
        )

    def _columns(self) -> list[tuple[str, list[Category | float]]]:
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


def _together(parts: Sequence[Estimates], rows: NDArray[Any], target: Target) -> Estimates:
    """Estimates [j] of the mean over all rows, from estimates of parts with these ``rows``."""
    if len(parts) == 1:
        return parts[0]
    total = int(rows.sum())
    weights = (rows / total)[:, None]
    values, errors = (np.array([getattr(p, name) for p in parts]) for name in ("value", "error"))
    value = (weights * values).sum(axis=0)
    between = np.zeros_like(value)
    if target == "population":
        between = (weights * (values - value) ** 2).sum(axis=0) / total
    ends = []
    for name, side in (("low", -1), ("high", 1)):
        reach = np.abs(np.array([getattr(p, name) for p in parts]) - values)
        # A part with few rows has no interval, but the sum of many such parts has one.
        reach = np.where(np.isnan(reach), Z * errors, reach)
        ends.append(value + side * np.sqrt(((weights * reach) ** 2).sum(axis=0) + Z**2 * between))
    error = np.sqrt(((weights * errors) ** 2).sum(axis=0) + between)
    if total < MIN_ROWS:
        ends = [np.full_like(value, np.nan)] * 2
    return Estimates(value, error, *ends)
