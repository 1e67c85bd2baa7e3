"""Unbiased estimators of shares and means of true labels, from how often each output occurs.

A functional f [c, j] of the class y of a label has an estimator g [m, j] of the output o, with
E[g(o) | y] = f(y): g = W·f if the table has an inverse W. A share of a column of a label of several
columns is the sum of the shares of all combinations with that label. It is estimated by the sum of
their estimators, which is one linear functional with its own interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from labeldp_verify.analysis import analyse
from labeldp_verify.artifact import Table
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    GridDomain,
    JointDomain,
    Randomizer,
)
from numpy.typing import NDArray

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.intervals import (
    ALONE,
    Confidence,
    Estimates,
    Hits,
    Target,
    Variance,
    score_estimates,
)
from labeldp_learn.inversion import (
    Floats,
    Inverse,
    LabelClasses,
    central_fourth_moments,
    invert,
    project_to_simplex,
)

# mean, histogram or quantiles (Pr[class ≤ j]); of the label (None), or of one column of several
Key = tuple[str, str | None]
HISTOGRAM: Key = ("histogram", None)
QUANTILES: Key = ("quantiles", None)
_TINY = float(np.finfo(float).tiny)
_UNBIASED = 1e-9  # of the labels' range
_FURTHEST = 4  # estimates, of those that lie furthest outside
_LAMBDAS = 2.0 ** np.arange(-12, 8)  # for |g − v| ≤ 1
_SMALL_TABLE = 1_000_000  # probabilities; up to here a least-squares problem is solved
_SMALLEST_SINGULAR = 1e-6
_ROUNDED = 1e-6  # of the labels' range: far above the rounding of float64 sums


@dataclass(frozen=True)
class OutputCounts:
    """The outputs that occur in some rows of one table.

    Attributes:
        outputs: [u] indices of outputs, increasing.
        counts: [u] how many rows have each.
    """

    outputs: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Rows that were counted."""
        return int(self.counts.sum())

    def mean(self, of_outputs: Floats) -> Floats:
        """The mean over all rows of a value per output, [u] or [u, j]."""
        return self.counts @ of_outputs / self.rows


class Moment(NamedTuple):
    """A moment of g as a functional of the label, which the outputs also estimate.

    Attributes:
        of_label: [c, j] the moment under each label: central if labels are fixed, else raw.
        of_output: [m, j] unbiased estimators h of it.
        with_g: [c, j] Cov[h, g | y] if labels are fixed, else E[h·g | y].
    """

    of_label: Floats
    of_output: Floats
    with_g: Floats


@dataclass(frozen=True)
class LinearEstimators:
    """Unbiased estimators of functionals, for an inverted table.

    Attributes:
        inverse: of the table.
        functionals: [c, j] of the classes.
        of_output: [m, j] their estimators.
        is_mean: whether they are means of numbers, with Student's intervals, or shares.
        hits: if each estimator counts one event, else None.
    """

    inverse: Inverse
    functionals: Floats
    of_output: Floats
    is_mean: bool = False
    hits: Hits | None = None

    @classmethod
    def shares(
        cls, inverse: Inverse, indicators: Floats | None = None, *, each_tail: bool = False
    ) -> LinearEstimators:
        """The share of each class, or of unions of classes given by ``indicators`` [c, j]."""
        each = np.eye(len(inverse.table)) if indicators is None else indicators
        g = inverse.weights @ each
        return cls(inverse, each, g, hits=Hits.of(g, each_tail=each_tail))

    @classmethod
    def mean(
        cls, inverse: Inverse, numbers: Floats, of_output: Floats | None = None
    ) -> LinearEstimators:
        """The mean of ``numbers`` [c]; ``of_output`` [m] if an unbiased estimator is known."""
        g = inverse.weights @ numbers if of_output is None else of_output
        return cls(inverse, numbers[:, None], g[:, None], is_mean=True)

    def __call__(
        self,
        counts: OutputCounts,
        target: Target,
        projected: Floats,
        confidence: Confidence = ALONE,
    ) -> Estimates:
        """The estimates [j] of some rows; ``projected`` [c] is a distribution near their labels."""
        value, n = self.estimate(counts), counts.rows
        variance = self.variance(counts, target, projected)
        if self.hits is not None:
            normal = score_estimates(value, variance, n, confidence.z)
            return self.hits.where_rare(normal, n, target, confidence)
        quantile = confidence.student(n) if self.is_mean else confidence.z
        return score_estimates(value, variance, n, quantile, self.jump(projected))

    def estimate(self, counts: OutputCounts) -> Floats:
        """Estimates [j] of the functionals' means."""
        return counts.mean(self.of_output[counts.outputs])

    def variance(self, counts: OutputCounts, target: Target, shares: Floats) -> Variance:
        """The variance of g(o), of one row, for each value of the functional.

        Its estimate is unbiased, but its error depends on the error of the functional's estimate.
        The regression of one on the other corrects it for each value of the functional. In
        randomized response this gives the variance exactly.

        Args:
            counts: the outputs.
            target: what is random: only the noise, or also the labels.
            shares: [c] of the classes, a distribution near theirs, for the regression.
        """
        value, f = self.estimate(counts), self.functionals
        moment = self._variance if target == "rows" else self._second
        common, random = shares @ moment.with_g, shares @ moment.of_label
        if target == "population":
            mean = shares @ f
            common, random = common - random * mean, random - mean**2
        slope = common / np.maximum(random, _TINY)
        # At the nearest possible value of the functional, the variance is one that labels can have.
        beyond = np.clip(value, f.min(axis=0), f.max(axis=0)) - value
        inside = counts.mean(moment.of_output[counts.outputs]) + slope * beyond
        inside = np.clip(inside, moment.of_label.min(axis=0), moment.of_label.max(axis=0))
        at_value = inside - slope * beyond
        if target == "rows":
            return Variance(at_value, slope, 0.0)
        return Variance(at_value - value**2, slope - 2 * value, 1.0)

    def jump(self, shares: Floats) -> Floats:
        """[j] the size of the noise that matters if it is rare: √(fourth moment/variance)."""
        spread = np.maximum(shares @ self._variance.of_label, _TINY)
        return np.sqrt(shares @ self._fourth / spread)

    def log_chance(self, counts: OutputCounts) -> float:
        """log of a bound on the probability that estimates are this far outside the possible range.

        It is 0 if no estimate is outside. For n independent rows with any labels and any λ > 0
        (Chernoff 1952)

            Pr[mean of g(o) ≥ v]  ≤  (max over labels y of E[exp(λ·(g(o) − v)) | y])^n

        The same with −g bounds estimates that are too small.
        """
        f, g = self.functionals, self.of_output
        value = self.estimate(counts)
        beyond = np.maximum(f.min(axis=0) - value, value - f.max(axis=0))
        relative = beyond / self._scale
        least = 0.0
        for i in np.argsort(-relative)[:_FURTHEST]:
            if beyond[i] <= 0:
                break
            side = 1 if value[i] > f[:, i].max() else -1
            away = side * (g[:, i] - value[i])
            powers = np.exp(np.outer(away / np.maximum(np.abs(away).max(), _TINY), _LAMBDAS))
            largest = (self.inverse.table @ powers).max(axis=0)
            least = min(least, counts.rows * math.log(largest.min()))
        return min(least + math.log(len(value)), 0.0)

    @property
    def size(self) -> int:
        """The number of functionals j."""
        return int(self.functionals.shape[1])

    @cached_property
    def under_uniform(self) -> Floats:
        """[j] the variance of g(o), if all classes are equally likely; no label decides it."""
        return self._second.of_label.mean(axis=0) - self.functionals.mean(axis=0) ** 2

    def by_output(self, outputs: int) -> tuple[Floats, Floats]:
        """[m, j] the estimators g, and unbiased estimators of Var[g | y]."""
        return self.of_output, self._variance.of_output

    @cached_property
    def _variance(self) -> Moment:
        f, scale = self.functionals, self._scale
        scaled = self.inverse.table @ (self.of_output / scale) ** 2 - (f / scale) ** 2
        moment = self._moment(np.maximum(scaled, 0.0) * scale**2)
        return moment._replace(with_g=moment.with_g - moment.of_label * f)

    @cached_property
    def _second(self) -> Moment:
        return self._moment(self.inverse.table @ self.of_output**2)

    @cached_property
    def _fourth(self) -> Floats:
        """[c, j] E[(g − f)⁴ | y]."""
        g, f = self.of_output / self._scale, self.functionals / self._scale
        return central_fourth_moments(self.inverse.table, g, f) * self._scale**4

    @cached_property
    def _scale(self) -> Floats:
        """[j] the largest |g|; g is divided by it before powers are computed."""
        return np.maximum(np.abs(self.of_output).max(axis=0), _TINY)

    def _moment(self, of_label: Floats) -> Moment:
        of_output = self.inverse.weights @ of_label
        return Moment(of_label, of_output, self.inverse.table @ (of_output * self.of_output))


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
    def of(cls, table: Table, classes: LabelClasses) -> UnbiasedMean:
        """The estimator. If the table is too large, the worst label's noise bounds the noise."""
        r, domain = table.randomizer, table.domain
        variance = np.array([float(v) for v in analyse(r).variances()])
        weights = None
        if len(variance) * r.outputs <= _SMALL_TABLE:
            chances = classes.matrix(table)
            # Add the largest variance that the weights miss.
            weights = np.linalg.lstsq(chances, variance, rcond=_SMALLEST_SINGULAR)[0]
            weights = weights + max(float((variance - chances @ weights).max()), 0.0)
        ends = domain.labels()
        labels, k = sorted([float(ends[0]), float(ends[-1])]), len(variance)
        between = (labels[1] - labels[0]) ** 2 * (k + 1) / (12 * max(k - 1, 1))  # evenly spaced
        if isinstance(domain, GridDomain):
            between = float(np.var(domain.values))
        values = values_of(r)
        # Additive noise may have too many outputs to list; they are increasing.
        additive = isinstance(r, AdditiveRandomizer)
        outputs = values(np.array([0, r.outputs - 1]) if additive else np.arange(r.outputs))
        return cls(
            values,
            weights,
            variance.min(keepdims=True),
            variance.max(keepdims=True),
            variance.mean(keepdims=True) + between,
            (labels[0], labels[1]),
            (float(outputs.min()), float(outputs.max())),
        )

    def __call__(
        self,
        counts: OutputCounts,
        target: Target,
        projected: Floats,
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
            slope = third / np.maximum(second, _TINY)
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


Estimator = LinearEstimators | UnbiasedMean


@dataclass
class TableEstimators:
    """The estimators of one table.

    Attributes:
        classes: of labels that it distinguishes.
        estimators: of the label, and of each column if there are several.
        refused: what it does not support: mean, histogram, quantiles → the reason.
    """

    classes: LabelClasses
    estimators: dict[Key, Estimator] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> TableEstimators:
        """The estimators that the table supports. Raises PrivateLabelError if there are none."""
        self, inverse = cls(LabelClasses.of(table)), None
        try:
            inverse = invert(table, self.classes)
        except PrivateLabelError as error:
            self.refused = dict.fromkeys(("histogram", "quantiles"), str(error))
        else:
            self.estimators[HISTOGRAM] = LinearEstimators.shares(inverse)
        self._add("mean", lambda: mean_estimator(table, self.classes, inverse))
        if inverse is not None:
            whole = inverse
            self._add("quantiles", lambda: _cumulative(table, self.classes, whole))
            self._add_columns(table, whole)
        require_any(self.refused)
        return self

    def __call__(
        self, counts: OutputCounts, target: Target, confidence: Confidence = ALONE
    ) -> dict[Key, Estimates]:
        """The estimates of some rows."""
        shares = np.empty(0)  # a table that cannot be inverted has none
        histogram = self.estimators.get(HISTOGRAM)
        if isinstance(histogram, LinearEstimators):
            shares = project_to_simplex(histogram.estimate(counts))
        each = self.estimators.items()
        return {key: one(counts, target, shares, confidence) for key, one in each}

    def log_chances(self, counts: OutputCounts) -> list[float]:
        """Logs of bounds on the probability of estimates this far outside the possible range."""
        each = self.estimators.items()
        return [one.log_chance(counts) for key, one in each if key != QUANTILES]

    def _add(self, what: str, make: Callable[[], Estimator]) -> None:
        try:
            self.estimators[what, None] = make()
        except PrivateLabelError as error:
            self.refused[what] = str(error)

    def _add_columns(self, table: Table, inverse: Inverse) -> None:
        """Add the estimators of each column, unless different combinations have equal outputs."""
        domain = table.domain
        if not isinstance(domain, JointDomain) or not self.classes.are_single:
            return
        places = domain.places_of(np.arange(domain.size))
        names = table.certificate.label_columns
        for name, part, at in zip(names, domain.parts, places, strict=True):
            indicators = np.eye(part.size)[at]
            self.estimators["histogram", name] = LinearEstimators.shares(inverse, indicators)
            if not isinstance(part, CategoricalDomain):
                numbers = np.array([float(y) for y in part.labels()])
                self.estimators["mean", name] = LinearEstimators.mean(inverse, numbers[at])


def require_any(refused: dict[str, str]) -> None:
    """Raise PrivateLabelError if neither means nor histograms can be estimated."""
    if {"mean", "histogram"} <= set(refused):
        raise PrivateLabelError(f"no histogram: {refused['histogram']}; no mean: {refused['mean']}")


def mean_estimator(table: Table, classes: LabelClasses, inverse: Inverse | None) -> Estimator:
    """The estimator of the mean of the labels. Raises PrivateLabelError."""
    domain = table.domain
    if isinstance(domain, CategoricalDomain):
        raise PrivateLabelError(f"{_without_order(domain)} have none")
    bias = table.certificate.utility.largest_bias  # None where outputs are no numbers
    unbiased = bias is not None and bias <= _UNBIASED * float(domain.max - domain.min)
    if unbiased and inverse is None:
        return UnbiasedMean.of(table, classes)
    if not classes.are_single:
        raise PrivateLabelError(
            f"the artifact is biased and distinguishes only {classes.count:,} classes of its "
            f"{len(classes.of_label):,} labels: labels of one class have different values but the "
            "same outputs"
        )
    if inverse is None:
        raise PrivateLabelError("the artifact is biased, and its table cannot be inverted")
    r = table.randomizer
    outputs = values_of(r)(np.arange(r.outputs)) if unbiased else None
    return LinearEstimators.mean(inverse, np.array([float(y) for y in domain.labels()]), outputs)


def _cumulative(table: Table, classes: LabelClasses, inverse: Inverse) -> LinearEstimators:
    """The estimators of Pr[class ≤ j], j = 0 … c − 2, for quantiles. Raises PrivateLabelError."""
    if isinstance(table.domain, CategoricalDomain):
        raise PrivateLabelError(f"{_without_order(table.domain)} have none")
    if not classes.are_intervals:
        raise PrivateLabelError("labels that no output distinguishes are not neighbours")
    up_to = np.triu(np.ones((classes.count,) * 2))[:, :-1]
    return LinearEstimators.shares(inverse, up_to, each_tail=True)


def _without_order(domain: CategoricalDomain) -> str:
    several = isinstance(domain, JointDomain)
    return "combinations of several columns" if several else "categories"


def values_of(randomizer: Randomizer) -> Callable[[NDArray[np.int64]], Floats]:
    """From indices of outputs to numbers; additive noise may have too many to list."""
    if isinstance(randomizer, AdditiveRandomizer):
        # The float64 operations of AdditiveRandomizer.value.
        r = randomizer
        return lambda outputs: (r.low + outputs).astype(np.float64) * r.unit + r.origin
    numbers = np.array([float(output) for output in randomizer.values])
    return lambda outputs: numbers[outputs]
