"""The mean of the labels, with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import analyse
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Randomizer
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.chance import log_chance, log_chance_of_mean
from labeldp_compile.tools.estimate.functionals import LinearEstimators
from labeldp_compile.tools.estimate.intervals import (
    Estimates,
    Target,
    Variance,
    score_estimates,
    student,
)
from labeldp_compile.tools.estimate.inversion import (
    Inverse,
    LabelClasses,
    NotEstimableError,
    class_matrix,
    in_words,
)
from labeldp_compile.tools.estimate.private_counts import OutputCounts

Floats = NDArray[np.float64]
_UNBIASED = 1e-9  # of the labels' range
_SMALL_TABLE = 1_000_000  # probabilities, that are worth a least-squares problem
_SMALLEST_SINGULAR = 1e-6
_ROUNDED = 1e-6  # of the labels' range: far more than sums of float64 are off


@dataclass(frozen=True)
class LinearMean:
    """The mean, from an artifact whose table can be inverted."""

    linear: LinearEstimators

    def __call__(self, counts: OutputCounts, target: Target, projected: Floats | None) -> Estimates:
        """The estimate [1] of some rows."""
        assert projected is not None
        value, n = self.linear.estimate(counts), counts.rows
        variance, jump = (
            self.linear.variance(counts, target, projected),
            self.linear.jump(projected),
        )
        return score_estimates(value, variance, n, student(n), jump)

    def log_chance(self, counts: OutputCounts) -> float:
        """log of a bound on the chance of an estimate so far outside of the labels' range."""
        return log_chance(self.linear, counts)


@dataclass(frozen=True)
class UnbiasedMean:
    """The mean of the labels by the mean of the outputs, where only E[output | y] = y is known.

    Attributes:
        values: gives the outputs [u] of indices [u].
        weights: [m] estimates Var[output | y], or slightly more, from an output; or None: then the
            largest is taken.
        least, most: [1] of Var[output | y] over all y.
        labels, outputs: the least and the largest of them.
    """

    values: Callable[[NDArray[np.int64]], Floats]
    weights: Floats | None
    least: Floats
    most: Floats
    labels: tuple[float, float]
    outputs: tuple[float, float]

    @classmethod
    def of(cls, decoded: Table, classes: LabelClasses) -> UnbiasedMean:
        """The estimator; its noise is bounded by that of the worst label in too large a table."""
        variance = np.array([float(v) for v in analyse(decoded.randomizer).variances()])
        values = _values(decoded.randomizer)
        weights = None
        if len(variance) * decoded.randomizer.outputs <= _SMALL_TABLE:
            table = class_matrix(decoded, classes)
            # What no weights reach is added as its largest value.
            weights = np.linalg.lstsq(table, variance, rcond=_SMALLEST_SINGULAR)[0]
            weights = weights + max(float((variance - table @ weights).max()), 0.0)
        labels = [float(y) for y in (decoded.domain.labels()[0], decoded.domain.labels()[-1])]
        return cls(
            values,
            weights,
            variance.min(keepdims=True),
            variance.max(keepdims=True),
            (min(labels), max(labels)),
            _ends(decoded.randomizer),
        )

    def __call__(self, counts: OutputCounts, target: Target, projected: Floats | None) -> Estimates:
        """The estimate [1] of some rows."""
        g, n = self.values(counts.outputs)[:, None], counts.rows
        value = counts.counts @ g / n
        if target == "rows":
            variance = Variance(self._noise(counts), np.zeros(1), 0.0)
        else:
            # The slope is the regression of the empirical variance on the mean: Johnson (1978).
            second, third = (counts.counts @ (g - value) ** power / n for power in (2, 3))
            slope = third / np.maximum(second, np.finfo(float).tiny)
            empirical = np.maximum(second * n / max(n - 1, 1), self.least)
            variance = Variance(empirical, slope, 1.0)
        return score_estimates(value, variance, n, student(n))

    def log_chance(self, counts: OutputCounts) -> float:
        """log of a bound on the chance of an estimate so far outside of the labels' range."""
        value = float(counts.counts @ self.values(counts.outputs) / counts.rows)
        (first, last), (low, high) = self.labels, self.outputs
        beyond = max(first - value, value - last) - _ROUNDED * (last - first)
        reach = max(last - low, high - first)
        return log_chance_of_mean(beyond, float(self.most[0]), reach, counts.rows)

    def _noise(self, counts: OutputCounts) -> Floats:
        if self.weights is None:
            return self.most
        estimated = counts.counts @ self.weights[counts.outputs][:, None] / counts.rows
        noise: Floats = np.clip(estimated, self.least, self.most)
        return noise


Mean = LinearMean | UnbiasedMean


def mean_estimator(decoded: Table, classes: LabelClasses, inverse: Inverse | None) -> Mean:
    """Raises NotEstimableError."""
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        raise NotEstimableError(f"{in_words(domain)} have none")
    bias = decoded.certificate.utility.largest_bias  # none of sets of numbers
    unbiased = bias is not None and bias <= _UNBIASED * float(domain.max - domain.min)
    if unbiased and inverse is None:
        return UnbiasedMean.of(decoded, classes)
    if not classes.are_single:
        raise NotEstimableError(
            f"the artifact is biased and tells only {classes.count:,} classes of its "
            f"{len(classes.of_label):,} labels apart: labels of one class have different values "
            "and the same outputs"
        )
    if inverse is None:
        raise NotEstimableError("the artifact is biased, and its table cannot be inverted")
    labels = np.array([float(y) for y in domain.labels()])[:, None]
    g = inverse.weights @ labels
    if unbiased:
        g = _values(decoded.randomizer)(np.arange(decoded.randomizer.outputs))[:, None]
    return LinearMean(LinearEstimators(inverse, labels, g))


def _values(randomizer: Randomizer) -> Callable[[NDArray[np.int64]], Floats]:
    """Numbers of all groups' outputs, converted once: additive noise may have too many to keep."""
    if isinstance(randomizer, AdditiveRandomizer):
        # The float64 operations of AdditiveRandomizer.value.
        r = randomizer
        return lambda outputs: (r.low + outputs).astype(np.float64) * r.unit + r.origin
    numbers = np.array([float(output) for output in randomizer.values])
    return lambda outputs: numbers[outputs]


def _ends(randomizer: Randomizer) -> tuple[float, float]:
    """The least and the largest output; those of noise that is added increase."""
    m = randomizer.outputs
    additive = isinstance(randomizer, AdditiveRandomizer)
    values = _values(randomizer)(np.array([0, m - 1]) if additive else np.arange(m))
    return float(values.min()), float(values.max())
