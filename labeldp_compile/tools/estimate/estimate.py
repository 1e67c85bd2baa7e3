"""What private labels say in aggregate: post-processing, so free of further privacy cost.

Each table of an artifact has estimators of its own. What rows of several tables say together is the
mean of what each says, weighted with its rows, which are public. An interval of it follows from
those of the parts: either end lies as far from the estimate as the root of the sum of squares of
the parts' distances (MOVER: Zou and Donner, *Construction of confidence limits about effect
measures*, 2008). Of a population, the shares of the groups are not known, but estimated by those of
the rows, whose variance is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from labeldp_verify.artifact import Artifact, Table
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tools.estimate.chance import HARDLY
from labeldp_compile.tools.estimate.columns import ColumnEstimates
from labeldp_compile.tools.estimate.functionals import Quantile, quantiles
from labeldp_compile.tools.estimate.intervals import MIN_ROWS, Estimates, Target, Z
from labeldp_compile.tools.estimate.inversion import LabelClasses, NotEstimableError
from labeldp_compile.tools.estimate.of_table import Parts, TableEstimators, require_any
from labeldp_compile.tools.estimate.private_counts import GroupCounts
from labeldp_compile.tools.estimate.shares import project_to_simplex

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupEstimates:
    """The estimates of one group; None is what the artifact does not support.

    Attributes:
        name, rows: of the group.
        mean: [1].
        histogram: [c] shares of the classes, unprojected.
        projected: [c] the shares that are a distribution.
        quantiles: one a share.
        columns: the same of each column of a joint label.
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
    """The estimators of an artifact, for the tables that rows have.

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
        """Raises NotEstimableError if neither means nor histograms can be had of all tables."""
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
            reason = "its tables tell different classes of labels apart"
            for what in ("histogram", "quantiles"):
                self.refused.setdefault(what, reason)
        require_any(self.refused)
        return self

    @property
    def table(self) -> Table:
        """The table of all rows that no group lists: its domain is that of all."""
        return self.artifact.table(self.artifact.groups.own_tables)

    @property
    def classes(self) -> LabelClasses:
        """Of labels that every table tells apart, if there is a histogram."""
        return next(iter(self.estimators.values())).classes

    def __call__(
        self,
        groups: Sequence[GroupCounts],
        target: Target,
        observer: Observer = QUIET,
    ) -> list[GroupEstimates]:
        """The estimates of each group; the observer is told its rows when it is done."""
        found = []
        for group in groups:
            found.append(self._of(group, target))
            observer.rows(group.rows)
        return found

    def are_hardly_private(self, group: GroupCounts) -> bool:
        """Whether some table's estimates are further outside of what is possible than by chance."""
        for table, counts in group.by_table.items():
            found = self.estimators[table].log_chances(counts)
            if min(found) + math.log(len(group.by_table) * len(found)) < HARDLY:
                return True
        return False

    def _of(self, group: GroupCounts, target: Target) -> GroupEstimates:
        used = [self.estimators[table] for table in group.by_table]
        counted = group.by_table.values()
        parts = [table(counts, target) for table, counts in zip(used, counted, strict=True)]
        rows = np.array([counts.rows for counts in counted])

        def of(pick: Callable[[Parts], Estimates | None], what: str = "") -> Estimates | None:
            known = [found for found in map(pick, parts) if found is not None]
            if what in self.refused or len(known) < len(parts):
                return None
            return _together(known, rows, target)

        histogram = of(lambda part: part.histogram, "histogram")
        cumulative = of(lambda part: part.cumulative, "quantiles")
        projected = None if histogram is None else project_to_simplex(histogram.value)
        columns = []
        for i, column in enumerate(used[0].columns if all(part.columns for part in parts) else ()):
            shares = _together([part.columns[i][0] for part in parts], rows, target)
            mean = of(lambda part, i=i: part.columns[i][1])  # type: ignore[misc]
            near = project_to_simplex(shares.value)
            columns.append(ColumnEstimates(column.name, column.labels, shares, near, mean))
        return GroupEstimates(
            group.name,
            group.rows,
            of(lambda part: part.mean, "mean"),
            histogram,
            projected,
            None if cumulative is None or projected is None else quantiles(cumulative, projected),
            columns,
        )


def _together(parts: Sequence[Estimates], rows: NDArray[Any], target: Target) -> Estimates:
    """Estimates [f] of the mean over all rows, from those of parts of so many ``rows``."""
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
        # Parts of few rows have no interval of their own; of many such parts the sum has one.
        reach = np.where(np.isnan(reach), Z * errors, reach)
        ends.append(value + side * np.sqrt(((weights * reach) ** 2).sum(axis=0) + Z**2 * between))
    error = np.sqrt(((weights * errors) ** 2).sum(axis=0) + between)
    if total < MIN_ROWS:
        ends = [np.full_like(value, np.nan)] * 2
    return Estimates(value, error, *ends)
