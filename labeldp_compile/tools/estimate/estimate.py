"""What private labels say in aggregate: post-processing, so free of further privacy cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.chance import HARDLY, log_chance
from labeldp_compile.tools.estimate.columns import (
    ColumnEstimates,
    ColumnEstimation,
    column_estimations,
)
from labeldp_compile.tools.estimate.functionals import Quantile, quantiles
from labeldp_compile.tools.estimate.intervals import Estimates, Target
from labeldp_compile.tools.estimate.inversion import (
    Inverse,
    LabelClasses,
    NotEstimableError,
    invert,
    label_classes,
)
from labeldp_compile.tools.estimate.means import Mean, mean_estimator
from labeldp_compile.tools.estimate.private_counts import GroupCounts
from labeldp_compile.tools.estimate.shares import (
    Shares,
    cumulative_estimators,
    project_to_simplex,
    share_estimators,
)
from labeldp_compile.tools.inspection import Decoded

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


@dataclass(frozen=True)
class Parts:
    """What the outputs of one group say; None is what the artifact does not support.

    Attributes:
        mean: [1].
        histogram: [c] shares of the classes, unprojected.
        projected: [c] the shares that are a distribution.
        cumulative: [c − 1] shares of the classes up to each.
    """

    mean: Estimates | None
    histogram: Estimates | None
    projected: Floats | None
    cumulative: Estimates | None


@dataclass
class Estimation:
    """The estimators of one artifact.

    Attributes:
        decoded: the verified artifact.
        classes: of labels that it tells apart.
        refused: what it does not support: mean, histogram, quantiles → the reason.
    """

    decoded: Decoded
    classes: LabelClasses
    refused: dict[str, str] = field(default_factory=dict)
    _mean: Mean | None = None
    _histogram: Shares | None = None
    _cumulative: Shares | None = None
    columns: list[ColumnEstimation] = field(default_factory=list)

    @classmethod
    def of(cls, decoded: Decoded) -> Estimation:
        """Raises NotEstimableError if the artifact supports no estimate at all."""
        self = cls(decoded, label_classes(decoded))
        inverse: Inverse | None = None
        try:
            inverse = invert(decoded, self.classes)
            self._histogram = share_estimators(inverse)
        except NotEstimableError as error:
            self.refused["histogram"] = self.refused["quantiles"] = str(error)
        try:
            self._mean = mean_estimator(decoded, self.classes, inverse)
        except NotEstimableError as error:
            self.refused["mean"] = str(error)
        if inverse is not None:
            try:
                self._cumulative = cumulative_estimators(decoded, self.classes, inverse)
            except NotEstimableError as error:
                self.refused["quantiles"] = str(error)
            self.columns = column_estimations(decoded, self.classes, inverse)
        if self._mean is None and self._histogram is None:
            raise NotEstimableError(
                f"no histogram: {self.refused['histogram']}; no mean: {self.refused['mean']}"
            )
        return self

    def __call__(
        self,
        groups: Sequence[GroupCounts],
        target: Target,
        progress: Callable[[int], None] = lambda rows: None,
    ) -> list[GroupEstimates]:
        """The estimates of each group; ``progress`` is told the rows of each when it is done."""
        found = []
        for group in groups:
            found.append(self._of_group(group, target))
            progress(group.rows)
        return found

    def parts(self, group: GroupCounts, target: Target) -> Parts:
        """The estimates of one group, before quantiles are read off them."""
        projected = None
        if self._histogram is not None:
            projected = project_to_simplex(self._histogram.linear.estimate(group))
        mean = None if self._mean is None else self._mean(group, target, projected)
        if self._histogram is None or projected is None:
            return Parts(mean, None, None, None)
        histogram, cumulative = self._histogram(group, target, projected), None
        if self._cumulative is not None:
            cumulative = self._cumulative(group, target, projected)
        return Parts(mean, histogram, projected, cumulative)

    def are_hardly_private(self, group: GroupCounts, of: int = 1) -> bool:
        """Whether estimates are further outside of what is possible than chance explains.

        It is asked of so many groups.
        """
        found = [column.log_chance(group) for column in self.columns]
        if self._histogram is not None:
            found.append(log_chance(self._histogram.linear, group))
        if self._mean is not None:
            found.append(self._mean.log_chance(group))
        return min(found) + math.log(of * len(found)) < HARDLY

    def _of_group(self, group: GroupCounts, target: Target) -> GroupEstimates:
        parts, found = self.parts(group, target), None
        if parts.cumulative is not None and parts.projected is not None:
            found = quantiles(parts.cumulative, parts.projected)
        return GroupEstimates(
            group.name,
            group.rows,
            parts.mean,
            parts.histogram,
            parts.projected,
            found,
            [column(group, target, parts.projected) for column in self.columns],
        )
