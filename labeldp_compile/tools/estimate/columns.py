"""What private combinations say of one column of a joint label: its shares, and its mean.

A share of a column is the sum of the shares of all combinations with that label, and is estimated
by the sum of their estimators: one linear functional, with an interval of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, Category, JointDomain
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.chance import log_chance
from labeldp_compile.tools.estimate.functionals import LinearEstimators
from labeldp_compile.tools.estimate.intervals import Estimates, Target
from labeldp_compile.tools.estimate.inversion import Inverse, LabelClasses
from labeldp_compile.tools.estimate.means import LinearMean
from labeldp_compile.tools.estimate.private_counts import OutputCounts
from labeldp_compile.tools.estimate.shares import Shares, share_estimators

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnEstimates:
    """The estimates of one column in one group.

    Attributes:
        name: of the column.
        labels: [k_j] of it.
        histogram: [k_j] their shares, unprojected.
        projected: [k_j] the shares that are a distribution.
        mean: [1]; None of categories.
    """

    name: str
    labels: list[Category | float]
    histogram: Estimates
    projected: Floats
    mean: Estimates | None


@dataclass(frozen=True)
class ColumnEstimators:
    """The estimators of one column."""

    name: str
    labels: list[Category | float]
    shares: Shares
    mean: LinearMean | None

    def __call__(
        self, counts: OutputCounts, target: Target, projected: Floats
    ) -> tuple[Estimates, Estimates | None]:
        """The shares and the mean in some rows; ``projected`` [c] are shares of combinations."""
        mean = None if self.mean is None else self.mean(counts, target, projected)
        return self.shares(counts, target, projected), mean

    def log_chance(self, counts: OutputCounts) -> float:
        """log of a bound on the chance of estimates so far outside of what is possible."""
        of_mean = 0.0 if self.mean is None else self.mean.log_chance(counts)
        return min(log_chance(self.shares.linear, counts), of_mean)


def column_estimators(
    decoded: Table, classes: LabelClasses, inverse: Inverse
) -> list[ColumnEstimators]:
    """Of each column of a joint label; none of a label of one column, or where combinations that
    differ have the same outputs."""
    domain = decoded.domain
    if not isinstance(domain, JointDomain) or not classes.are_single:
        return []
    places = domain.places_of(np.arange(domain.size))
    columns = zip(decoded.certificate.label_columns, domain.parts, places, strict=True)
    found = []
    for name, part, at in columns:
        shares = share_estimators(inverse, np.eye(part.size)[at])
        mean = None
        if not isinstance(part, CategoricalDomain):
            numbers = np.array([float(y) for y in part.labels()])[at][:, None]
            mean = LinearMean(LinearEstimators(inverse, numbers, inverse.weights @ numbers))
        labels = list(part.listed)
        found.append(ColumnEstimators(name, labels, shares, mean))
    return found
