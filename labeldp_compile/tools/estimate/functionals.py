"""Functionals of a label that outputs estimate linearly, and the variance of such estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.intervals import Estimates, Target, Variance
from labeldp_compile.tools.estimate.inversion import Inverse
from labeldp_compile.tools.estimate.private_counts import OutputCounts

Floats = NDArray[np.float64]
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Moment:
    """A moment of g as a functional of the label, which the outputs estimate too.

    Attributes:
        of_label: [c, f] the moment under each label: central if labels are fixed, else raw.
        of_output: [m, f] unbiased estimators h of it.
        with_g: [c, f] Cov[h, g | y] if labels are fixed, else E[h·g | y].
    """

    of_label: Floats
    of_output: Floats
    with_g: Floats


@dataclass(frozen=True)
class LinearEstimators:
    """Unbiased estimators g [m, f] of functionals [c, f] of the classes, for an inverted table."""

    inverse: Inverse
    functionals: Floats
    of_output: Floats

    def estimate(self, counts: OutputCounts) -> Floats:
        """Estimates [f] of the functionals' means."""
        result: Floats = counts.counts @ self.of_output[counts.outputs] / counts.rows
        return result

    def variance(self, counts: OutputCounts, target: Target, shares: Floats) -> Variance:
        """The variance of g(o), of one row, for each value of the functional.

        It is estimated without bias. That estimate is off where the functional's is, and by how
        much for each unit is the regression of the one on the other, by which it is corrected for
        every value of the functional. In randomized response that gives the variance exactly.

        Args:
            group: the outputs.
            target: what is random, the noise alone or the labels too.
            shares: [c] of the classes, a distribution near theirs, for the regression.
        """
        value = self.estimate(counts)
        moment, f = self._variance if target == "rows" else self._second, self.functionals
        common, random = shares @ moment.with_g, shares @ moment.of_label
        if target == "population":
            mean = shares @ f
            common, random = common - random * mean, random - mean**2
        slope = common / np.maximum(random, _TINY)
        # At the nearest value of the functional that is possible, it is one that labels can have.
        beyond = np.clip(value, f.min(axis=0), f.max(axis=0)) - value
        found = counts.counts @ moment.of_output[counts.outputs] / counts.rows + slope * beyond
        found = np.clip(found, moment.of_label.min(axis=0), moment.of_label.max(axis=0))
        found = found - slope * beyond
        if target == "rows":
            return Variance(found, slope, 0.0)
        return Variance(found - value**2, slope - 2 * value, 1.0)

    def jump(self, shares: Floats) -> Floats:
        """[f] the size of the noise that decides where it is rare: √(fourth moment/variance)."""
        spread = np.maximum(shares @ self._variance.of_label, _TINY)
        result: Floats = np.sqrt(shares @ self._fourth / spread)
        return result

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
        """[c, f] E[(g − f)⁴ | y]."""
        scale = self._scale
        f, g = self.functionals / scale, self.of_output / scale
        second, third, fourth = (self.inverse.table @ g**power for power in (2, 3, 4))
        central = np.maximum(fourth - 4 * f * third + 6 * f**2 * second - 3 * f**4, 0.0)
        result: Floats = central * scale**4
        return result

    @cached_property
    def _scale(self) -> Floats:
        """[f] the largest |g|, by which it is divided before powers are taken."""
        result: Floats = np.maximum(np.abs(self.of_output).max(axis=0), _TINY)
        return result

    def _moment(self, of_label: Floats) -> Moment:
        of_output = self.inverse.weights @ of_label
        return Moment(of_label, of_output, self.inverse.table @ (of_output * self.of_output))


# Quantiles by inverting bounds of the distribution function (Woodruff 1952), point by point.
#
# The quantile of a share q is the least label y with F(y) ≥ q. Label y is excluded if F(y) < q,
# or if F just below y is ≥ q, beyond the noise; each happens for the true quantile with
# probability 2.5 %. The interval is the hull of the labels that are left.


SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Quantile:
    """Indices of classes, and None for the interval where there are too few rows."""

    share: float
    estimate: int
    interval: tuple[int, int] | None


def quantiles(cumulative: Estimates, projected: Floats) -> list[Quantile]:
    """From estimates [c − 1] of Pr[class ≤ j] and the projected histogram [c]."""
    at_most = projected.cumsum()
    found = []
    for share in SHARES:
        estimate = min(int(np.searchsorted(at_most, share - 1e-12)), len(projected) - 1)
        interval = None
        if not np.isnan(cumulative.low).any():
            reached = np.append(cumulative.high >= share, True)
            not_before = np.append(True, cumulative.low < share)
            left = np.flatnonzero(reached & not_before)
            # Bounds that cross leave nothing: then the estimate stands for itself.
            low, high = (left[0], left[-1]) if len(left) else (estimate, estimate)
            interval = (min(int(low), estimate), max(int(high), estimate))
        found.append(Quantile(share, estimate, interval))
    return found
