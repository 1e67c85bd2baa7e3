"""Functionals that are linear in the outputs: shares, and means if the table is invertible.

A functional f [c, j] of the class y of a label has an estimator g [m, j] of the output o, with
E[g(o) | y] = f(y).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.hits import Hits
from labeldp_compile.tools.estimate.intervals import (
    ALONE,
    Confidence,
    Estimates,
    Target,
    Variance,
    score_estimates,
)
from labeldp_compile.tools.estimate.inversion import Inverse
from labeldp_compile.tools.estimate.private_counts import OutputCounts

Floats = NDArray[np.float64]
_TINY = float(np.finfo(float).tiny)
_FURTHEST = 4  # estimates, of those that lie furthest outside
_LAMBDAS = 2.0 ** np.arange(-12, 8)  # for |g − v| ≤ 1


@dataclass(frozen=True)
class Moment:
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
            found = score_estimates(value, variance, n, confidence.z)
            return self.hits.where_rare(found, n, target, confidence)
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
        value = self.estimate(counts)
        moment, f = self._variance if target == "rows" else self._second, self.functionals
        common, random = shares @ moment.with_g, shares @ moment.of_label
        if target == "population":
            mean = shares @ f
            common, random = common - random * mean, random - mean**2
        slope = common / np.maximum(random, _TINY)
        # At the nearest possible value of the functional, the variance is one that labels can have.
        beyond = np.clip(value, f.min(axis=0), f.max(axis=0)) - value
        found = counts.mean(moment.of_output[counts.outputs]) + slope * beyond
        found = np.clip(found, moment.of_label.min(axis=0), moment.of_label.max(axis=0))
        found = found - slope * beyond
        if target == "rows":
            return Variance(found, slope, 0.0)
        return Variance(found - value**2, slope - 2 * value, 1.0)

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
        return Moment(moment.of_label, moment.of_output, moment.with_g - moment.of_label * f)

    @cached_property
    def _second(self) -> Moment:
        return self._moment(self.inverse.table @ self.of_output**2)

    @cached_property
    def _fourth(self) -> Floats:
        """[c, j] E[(g − f)⁴ | y]."""
        scale = self._scale
        f, g = self.functionals / scale, self.of_output / scale
        second, third, fourth = (self.inverse.table @ g**power for power in (2, 3, 4))
        central = np.maximum(fourth - 4 * f * third + 6 * f**2 * second - 3 * f**4, 0.0)
        return central * scale**4

    @cached_property
    def _scale(self) -> Floats:
        """[j] the largest |g|; g is divided by it before powers are computed."""
        return np.maximum(np.abs(self.of_output).max(axis=0), _TINY)

    def _moment(self, of_label: Floats) -> Moment:
        of_output = self.inverse.weights @ of_label
        return Moment(of_label, of_output, self.inverse.table @ (of_output * self.of_output))
