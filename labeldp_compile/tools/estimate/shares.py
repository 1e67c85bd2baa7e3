"""Shares of the labels, and of the labels up to each, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.functionals import LinearEstimators
from labeldp_compile.tools.estimate.hits import Hits
from labeldp_compile.tools.estimate.intervals import Estimates, Target, Z, score_estimates
from labeldp_compile.tools.estimate.inversion import (
    Inverse,
    LabelClasses,
    NotEstimableError,
    in_words,
)
from labeldp_compile.tools.estimate.private_counts import OutputCounts


def project_to_simplex(shares: Floats) -> Floats:
    """The Euclidean projection [c] of shares [c]: max(share − t, 0) for the t that fits."""
    falling = np.sort(shares)[::-1]
    levels = (falling.cumsum() - 1.0) / np.arange(1, len(shares) + 1)
    kept = int(np.flatnonzero(falling > levels)[-1])
    result: Floats = np.maximum(shares - levels[kept], 0.0)
    return result


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shares:
    """Estimators of shares, whose functionals are indicators of labels.

    Attributes:
        linear: the estimators.
        hits: where each of them counts one event, else None.
    """

    linear: LinearEstimators
    hits: Hits | None

    def __call__(self, counts: OutputCounts, target: Target, projected: Floats) -> Estimates:
        """The estimates [f] of some rows, near whose labels [c] the noise is taken."""
        value, n = self.linear.estimate(counts), counts.rows
        variance = self.linear.variance(counts, target, projected)
        if self.hits is not None:
            found = score_estimates(value, variance, n, Z)
            return self.hits.where_rare(found, n, target)
        return score_estimates(value, variance, n, Z, self.linear.jump(projected))


def share_estimators(inverse: Inverse, indicators: Floats | None = None) -> Shares:
    """Of each class, or of each of some sets of classes, by their ``indicators`` [c, f]."""
    each = np.eye(len(inverse.table)) if indicators is None else indicators
    return _shares(inverse, each, each_tail=False)


def cumulative_estimators(decoded: Table, classes: LabelClasses, inverse: Inverse) -> Shares:
    """Of Pr[class ≤ j], j = 0 … c − 2, for quantiles. Raises NotEstimableError."""
    if isinstance(decoded.domain, CategoricalDomain):
        raise NotEstimableError(f"{in_words(decoded.domain)} have none")
    if not classes.are_intervals:
        raise NotEstimableError("labels that are not told apart do not lie side by side")
    up_to = np.triu(np.ones((classes.count,) * 2))[:, :-1]
    return _shares(inverse, up_to, each_tail=True)


def _shares(inverse: Inverse, indicators: Floats, *, each_tail: bool) -> Shares:
    linear = LinearEstimators(inverse, indicators, inverse.weights @ indicators)
    return Shares(linear, Hits.of(linear.of_output, each_tail=each_tail))
