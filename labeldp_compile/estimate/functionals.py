"""What is estimated, as functionals of a label, and the estimators that the outputs give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.estimate.classes import LabelClasses, class_matrix
from labeldp_compile.estimate.intervals import Estimates, NoiseBounds, Target, estimates
from labeldp_compile.estimate.inversion import Inverse, NotEstimableError
from labeldp_compile.estimate.private_counts import GroupCounts
from labeldp_compile.inspection import Decoded
from labeldp_compile.randomizer import AdditiveRandomizer, CategoricalDomain, Randomizer
from labeldp_compile.randomizer.utility import variances

Floats = NDArray[np.float64]
_UNBIASED = 1e-9  # of the labels' range
_HEAVY = 3.0  # a jump in standard deviations, where no table says it
_SMALL_TABLE = 1_000_000  # probabilities, that are worth a least-squares problem
_SMALLEST_SINGULAR = 1e-6


@dataclass(frozen=True)
class LinearEstimators:
    """Estimators of functionals [c, f] of the classes, by the weights of an inverted table.

    Var[g | y] is itself a functional of y, which the same weights estimate.
    """

    of_output: Floats
    noise: Floats
    bounds: NoiseBounds

    @classmethod
    def of(cls, inverse: Inverse, functionals: Floats, step: float = 0.0) -> LinearEstimators:
        """The estimators of these functionals; ``step`` is 1 if they are indicators of labels."""
        g = inverse.weights @ functionals
        variance, bounds = _noise_of(inverse.table, g, functionals)
        bounds = NoiseBounds(bounds.least, bounds.most, bounds.jump, step)
        return cls(g, inverse.weights @ variance, bounds)

    def __call__(self, group: GroupCounts, target: Target) -> Estimates:
        """The estimates [f] of one group."""
        g, noise = self.of_output[group.outputs], self.noise[group.outputs]
        return estimates(g, noise, group.counts, self.bounds, target)


@dataclass(frozen=True)
class UnbiasedMean:
    """The mean of the labels by the mean of the outputs, where E[output | y] = y.

    Attributes:
        values: gives the outputs [u] of indices [u].
        weights: [m] estimates Var[output | y], or slightly more, from an output; or None: then the
            largest is taken.
        bounds: of the noise.
    """

    values: Callable[[NDArray[np.int64]], Floats]
    weights: Floats | None
    bounds: NoiseBounds

    @classmethod
    def of(cls, decoded: Decoded, classes: LabelClasses, inverse: Inverse | None) -> UnbiasedMean:
        """The estimator; its noise is bounded by that of the worst label in too large a table."""
        variance = np.array([float(v) for v in variances(decoded.randomizer)])
        m, values = decoded.randomizer.outputs, _values(decoded.randomizer)
        if inverse is None and len(variance) * m > _SMALL_TABLE:
            least, most = np.array([variance.min()]), np.array([variance.max()])
            return cls(values, None, NoiseBounds(least, most, _HEAVY * np.sqrt(most)))
        table = class_matrix(decoded, classes) if inverse is None else inverse.table
        g = values(np.arange(m))[:, None]
        labels = np.array([float(y) for y in decoded.domain.labels()])[:, None]
        _, bounds = _noise_of(table, g, labels)
        if inverse is not None:
            return cls(values, inverse.weights @ variance, bounds)
        # What no weights reach is added as its largest value.
        weights = np.linalg.lstsq(table, variance, rcond=_SMALLEST_SINGULAR)[0]
        return cls(values, weights + max(float((variance - table @ weights).max()), 0.0), bounds)

    def __call__(self, group: GroupCounts, target: Target) -> Estimates:
        """The estimate [1] of one group."""
        g = self.values(group.outputs)[:, None]
        if self.weights is None:
            noise = np.broadcast_to(self.bounds.most, g.shape)
        else:
            noise = self.weights[group.outputs][:, None]
        return estimates(g, noise, group.counts, self.bounds, target)


Mean = LinearEstimators | UnbiasedMean


def mean_estimator(decoded: Decoded, classes: LabelClasses, inverse: Inverse | None) -> Mean:
    """Raises NotEstimableError."""
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        raise NotEstimableError("categories have none")
    bias = decoded.certificate["utility"]["largest_bias"]
    if bias <= _UNBIASED * float(domain.max - domain.min):
        return UnbiasedMean.of(decoded, classes, inverse)
    if not classes.are_single:
        raise NotEstimableError(
            f"the artifact is biased and tells only {classes.count:,} classes of its "
            f"{len(classes.of_label):,} labels apart: labels of one class have different values "
            "and the same outputs"
        )
    if inverse is None:
        raise NotEstimableError("the artifact is biased, and its table cannot be inverted")
    labels = np.array([float(y) for y in domain.labels()])
    return LinearEstimators.of(inverse, labels[:, None])


def cumulative_estimators(
    decoded: Decoded, classes: LabelClasses, inverse: Inverse
) -> LinearEstimators:
    """Of Pr[class ≤ j], j = 0 … c − 2, for quantiles. Raises NotEstimableError."""
    if isinstance(decoded.domain, CategoricalDomain):
        raise NotEstimableError("categories have none")
    if not classes.are_intervals:
        raise NotEstimableError("labels that are not told apart do not lie side by side")
    return LinearEstimators.of(inverse, np.triu(np.ones((classes.count,) * 2))[:, :-1], 1.0)


def _noise_of(table: Floats, g: Floats, functionals: Floats) -> tuple[Floats, NoiseBounds]:
    """Var[g | y] [c, f], and its bounds."""
    f = functionals
    scale = np.maximum(np.abs(g).max(axis=0), np.finfo(float).tiny)
    g, f = g / scale, f / scale
    second, third, fourth = (table @ g**power for power in (2, 3, 4))
    variance = np.maximum(second - f**2, 0.0)
    central = np.maximum(fourth - 4 * f * third + 6 * f**2 * second - 3 * f**4, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        jump = np.sqrt(np.where(variance > 1e-15, central / variance, 0.0)).max(axis=0)
    bounds = NoiseBounds(
        variance.min(axis=0) * scale**2, variance.max(axis=0) * scale**2, jump * scale
    )
    return variance * scale**2, bounds


def _values(randomizer: Randomizer) -> Callable[[NDArray[np.int64]], Floats]:
    """Numbers of all groups' outputs, converted once: additive noise may have too many to keep."""
    if isinstance(randomizer, AdditiveRandomizer):
        # The float64 operations of AdditiveRandomizer.value.
        r = randomizer
        return lambda outputs: (r.low + outputs).astype(np.float64) * r.unit + r.origin
    numbers = np.array([float(output) for output in randomizer.values])
    return lambda outputs: numbers[outputs]
