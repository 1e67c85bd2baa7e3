"""The mean of the labels from the mean of the outputs, if a table cannot be inverted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import analyse
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, GridDomain, Randomizer
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.intervals import (
    ALONE,
    Confidence,
    Estimates,
    Target,
    Variance,
    score_estimates,
)
from labeldp_compile.tools.estimate.inversion import LabelClasses, class_matrix
from labeldp_compile.tools.estimate.private_counts import OutputCounts

Floats = NDArray[np.float64]
_SMALL_TABLE = 1_000_000  # probabilities; up to here a least-squares problem is solved
_SMALLEST_SINGULAR = 1e-6
_ROUNDED = 1e-6  # of the labels' range: far above the rounding of float64 sums


@dataclass(frozen=True)
class UnbiasedMean:
    """The mean of the labels from the mean of the outputs, if only E[output | y] = y is known.

    Attributes:
        values: maps indices [u] to outputs [u].
        weights: [m] estimates Var[output | y], or slightly more, from an output; None to use the
            largest variance.
        least, most: [1] the smallest and the largest Var[output | y] over all y.
        under_uniform: [1] the variance of an output, if all labels are equally likely.
        labels, outputs: the smallest and the largest of each.
    """

    values: Callable[[NDArray[np.int64]], Floats]
    weights: Floats | None
    least: Floats
    most: Floats
    under_uniform: Floats
    labels: tuple[float, float]
    outputs: tuple[float, float]

    size = 1

    @classmethod
    def of(cls, decoded: Table, classes: LabelClasses) -> UnbiasedMean:
        """The estimator. If the table is too large, the worst label's noise bounds the noise."""
        r = decoded.randomizer
        variance = np.array([float(v) for v in analyse(r).variances()])
        weights = None
        if len(variance) * r.outputs <= _SMALL_TABLE:
            table = class_matrix(decoded, classes)
            # Add the largest variance that the weights miss.
            weights = np.linalg.lstsq(table, variance, rcond=_SMALLEST_SINGULAR)[0]
            weights = weights + max(float((variance - table @ weights).max()), 0.0)
        ends = decoded.domain.labels()
        labels, k = sorted([float(ends[0]), float(ends[-1])]), len(variance)
        between = (labels[1] - labels[0]) ** 2 * (k + 1) / (12 * max(k - 1, 1))  # evenly spaced
        if isinstance(decoded.domain, GridDomain):
            between = float(np.var(decoded.domain.values))
        values = values_of(r)
        # Additive noise may have too many outputs to list; they are increasing.
        additive = isinstance(r, AdditiveRandomizer)
        listed = values(np.array([0, r.outputs - 1]) if additive else np.arange(r.outputs))
        return cls(
            values,
            weights,
            variance.min(keepdims=True),
            variance.max(keepdims=True),
            variance.mean(keepdims=True) + between,
            (labels[0], labels[1]),
            (float(listed.min()), float(listed.max())),
        )

    def __call__(
        self,
        counts: OutputCounts,
        target: Target,
        projected: Floats | None,
        confidence: Confidence = ALONE,
    ) -> Estimates:
        """The estimate [1] of some rows; ``projected`` is not used."""
        g, n = self.values(counts.outputs)[:, None], counts.rows
        value = counts.mean(g)
        if target == "rows":
            noise = self.most
            if self.weights is not None:
                estimated = counts.mean(self.weights[counts.outputs][:, None])
                noise = np.clip(estimated, self.least, self.most)
            variance = Variance(noise, np.zeros(1), 0.0)
        else:
            # The slope is the regression of the empirical variance on the mean: Johnson (1978).
            second, third = (counts.mean((g - value) ** power) for power in (2, 3))
            slope = third / np.maximum(second, np.finfo(float).tiny)
            empirical = np.maximum(second * n / max(n - 1, 1), self.least)
            variance = Variance(empirical, slope, 1.0)
        return score_estimates(value, variance, n, confidence.student(n))

    def by_output(self, outputs: int) -> tuple[Floats, Floats]:
        """[m, 1] the values of the outputs, and estimators of their variance."""
        noise = np.full(outputs, self.most[0]) if self.weights is None else self.weights
        return self.values(np.arange(outputs))[:, None], noise[:, None]

    def log_chance(self, counts: OutputCounts) -> float:
        """log of a bound on the probability of an estimate this far outside the labels' range.

        It is Bernstein's inequality, with the largest variance of a label and the largest distance
        of an output from a label.
        """
        value = float(counts.mean(self.values(counts.outputs)))
        (first, last), (low, high) = self.labels, self.outputs
        beyond = max(first - value, value - last) - _ROUNDED * (last - first)
        reach = max(last - low, high - first)
        if beyond <= 0:
            return 0.0
        return -counts.rows * beyond**2 / (2 * (float(self.most[0]) + reach * beyond / 3))


def values_of(randomizer: Randomizer) -> Callable[[NDArray[np.int64]], Floats]:
    """From indices of outputs to numbers; additive noise may have too many to list."""
    if isinstance(randomizer, AdditiveRandomizer):
        # The float64 operations of AdditiveRandomizer.value.
        r = randomizer
        return lambda outputs: (r.low + outputs).astype(np.float64) * r.unit + r.origin
    numbers = np.array([float(output) for output in randomizer.values])
    return lambda outputs: numbers[outputs]
