"""What the outputs of one table say of its labels: the estimators, and the parts of an estimate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from labeldp_verify.artifact import Table
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.chance import log_chance
from labeldp_compile.tools.estimate.columns import ColumnEstimators, column_estimators
from labeldp_compile.tools.estimate.intervals import Estimates, Target
from labeldp_compile.tools.estimate.inversion import (
    Inverse,
    LabelClasses,
    NotEstimableError,
    invert,
    label_classes,
)
from labeldp_compile.tools.estimate.means import Mean, mean_estimator
from labeldp_compile.tools.estimate.private_counts import OutputCounts
from labeldp_compile.tools.estimate.shares import (
    Shares,
    cumulative_estimators,
    project_to_simplex,
    share_estimators,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """What the outputs of one table say; None is what it does not support.

    Attributes:
        mean: [1].
        histogram: [c] shares of the classes, unprojected.
        cumulative: [c − 1] shares of the classes up to each.
        columns: of each column of a joint label the shares [k_j], and the mean [1] of numbers.
    """

    mean: Estimates | None
    histogram: Estimates | None
    cumulative: Estimates | None
    columns: list[tuple[Estimates, Estimates | None]]


@dataclass
class TableEstimators:
    """The estimators of one table.

    Attributes:
        classes: of labels that it tells apart.
        refused: what it does not support: mean, histogram, quantiles → the reason.
        columns: the estimators of each column of a joint label.
    """

    classes: LabelClasses
    refused: dict[str, str] = field(default_factory=dict)
    columns: list[ColumnEstimators] = field(default_factory=list)
    _mean: Mean | None = None
    _histogram: Shares | None = None
    _cumulative: Shares | None = None

    @classmethod
    def of(cls, table: Table) -> TableEstimators:
        """Those that the table supports; ``require_any`` says whether there are any."""
        self = cls(label_classes(table))
        inverse: Inverse | None = None
        try:
            inverse = invert(table, self.classes)
            self._histogram = share_estimators(inverse)
        except NotEstimableError as error:
            self.refused["histogram"] = self.refused["quantiles"] = str(error)
        try:
            self._mean = mean_estimator(table, self.classes, inverse)
        except NotEstimableError as error:
            self.refused["mean"] = str(error)
        if inverse is not None:
            try:
                self._cumulative = cumulative_estimators(table, self.classes, inverse)
            except NotEstimableError as error:
                self.refused["quantiles"] = str(error)
            self.columns = column_estimators(table, self.classes, inverse)
        require_any(self.refused)
        return self

    def __call__(self, counts: OutputCounts, target: Target) -> Parts:
        """The estimates of some rows."""
        if self._histogram is None:
            mean = None if self._mean is None else self._mean(counts, target, None)
            return Parts(mean, None, None, [])
        projected = project_to_simplex(self._histogram.linear.estimate(counts))
        return Parts(
            mean=None if self._mean is None else self._mean(counts, target, projected),
            histogram=self._histogram(counts, target, projected),
            cumulative=None
            if self._cumulative is None
            else self._cumulative(counts, target, projected),
            columns=[column(counts, target, projected) for column in self.columns],
        )

    def log_chances(self, counts: OutputCounts) -> list[float]:
        """Logs of bounds on the chance of estimates so far outside of what is possible."""
        found = [column.log_chance(counts) for column in self.columns]
        if self._histogram is not None:
            found.append(log_chance(self._histogram.linear, counts))
        if self._mean is not None:
            found.append(self._mean.log_chance(counts))
        return found


def require_any(refused: dict[str, str]) -> None:
    """Raise NotEstimableError if neither means nor histograms can be had."""
    if {"mean", "histogram"} <= set(refused):
        raise NotEstimableError(f"no histogram: {refused['histogram']}; no mean: {refused['mean']}")
