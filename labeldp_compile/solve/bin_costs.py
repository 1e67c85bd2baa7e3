"""The cost of one bin of RR-on-Bins, by loss.

With b = e^−ε, s = 1 − b and L(v) = Σ p_y ℓ(v, y), a bin S costs
min_v b·L(v) + s·Σ_{y∈S} p_y ℓ(v, y): the entry L[r][i] of Algorithm 2 in "Regression with Label
Differential Privacy" (ICLR 2023), divided by e^ε. Two constants are subtracted before anything is
added up, because at large ε they would hide the rest: ℓ(y, y), which is part of every mechanism's
loss, and b·min L, which is part of every bin's cost. The remainder, the *excess*, is non-negative
and does not fall when a bin grows.
"""

from abc import ABC, abstractmethod

import numpy as np

from labeldp_compile.solve.losses import (
    BinLoss,
    Divergence,
    Floats,
    Ints,
    poisson_divergence,
    squared_divergence,
)
from labeldp_compile.solve.range_moments import Moments, RangeMoments


class BinCosts(ABC):
    """Costs of all bins over n labels with positive prior.

    Attributes:
        size: number of labels n.
        base: min_v L(v), in scaled loss units, shifted so that ℓ(y, y) = 0.
        unit: loss units in one scaled loss unit.
        shift: Σ p_y ℓ(y, y), in loss units.
    """

    base: float

    def __init__(self, size: int, epsilon: float, unit: float, shift: float = 0.0) -> None:
        """Of n labels at ε."""
        self.size, self.unit, self.shift = size, unit, shift
        self._outside = float(np.exp(-epsilon))
        self._stay = float(-np.expm1(-epsilon))

    @abstractmethod
    def excess(self, first: Ints, stop: Ints) -> Floats:
        """Cost of the bins of labels first..stop−1 minus b·base, in scaled units; elementwise."""

    @abstractmethod
    def values(self, first: Ints, stop: Ints) -> Floats:
        """The best output of each bin, in label units; elementwise."""


class _MeanCosts(BinCosts):
    """Losses whose best output is a weighted mean: Bregman divergences, up to ℓ(y, y).

    The outside of the bin acts like one point of weight b at the overall mean. So the cost of a bin
    is the spread inside its two halves plus the divergences of three means from their common mean.
    """

    def __init__(
        self,
        labels: Floats,
        prior: Floats,
        epsilon: float,
        divergence: Divergence,
        origin: float,
        unit: float,
        shift: float = 0.0,
    ) -> None:
        super().__init__(labels.size, epsilon, unit, shift)
        self._divergence, self._origin, self._scale = divergence, origin, _scale_of(labels)
        self._moments = RangeMoments((labels - origin) / self._scale, prior, divergence)
        left, right = self._moments.halves(np.array([0]), np.array([self.size]))
        self._mean = left.mass * left.mean + right.mass * right.mean
        spread = left.mass * divergence(left.mean, self._mean)
        spread += right.mass * divergence(right.mean, self._mean)
        self.base = float((spread + left.spread + right.spread)[0])

    def _value(self, left: Moments, right: Moments) -> Floats:
        inside = self._stay * (left.mass * left.mean + right.mass * right.mean)
        mass = self._stay * (left.mass + right.mass) + self._outside
        return (inside + self._outside * self._mean) / mass

    def excess(self, first: Ints, stop: Ints) -> Floats:
        left, right = self._moments.halves(first, stop)
        value = self._value(left, right)
        cost = left.mass * self._divergence(left.mean, value)
        cost += right.mass * self._divergence(right.mean, value)
        cost += left.spread
        cost += right.spread
        cost *= self._stay
        cost += self._outside * self._divergence(self._mean, value)
        return cost

    def values(self, first: Ints, stop: Ints) -> Floats:
        return self._value(*self._moments.halves(first, stop)) * self._scale + self._origin


class _AbsoluteCosts(BinCosts):
    """ℓ(v, y) = |v − y|: the best output is a weighted median, always one of the labels."""

    def __init__(self, labels: Floats, prior: Floats, epsilon: float) -> None:
        super().__init__(labels.size, epsilon, _scale_of(labels))
        self._labels = labels
        self._scaled = (labels - labels[0]) / self.unit
        self._cumulative = np.concatenate([[0.0], np.cumsum(prior)])
        self._moments = RangeMoments(
            self._scaled, prior, lambda label, mean: np.zeros_like(label + mean)
        )
        every = np.arange(self.size)
        everywhere = self._distance(np.zeros_like(every), np.full_like(every, self.size), every)
        self.base = float(everywhere.min())
        self._above_base = everywhere - self.base

    def _distance(self, first: Ints, stop: Ints, at: Ints) -> Floats:
        """Σ p_y |v − y| over the labels first..stop−1, v being label number `at`."""
        value = self._scaled[at]
        # Without the label itself: with it, a mean would be too close to v if its weight is large.
        end, start = np.clip(at, first, stop), np.clip(at + 1, first, stop)
        a, b = self._moments.halves(first, end)
        below = a.mass * (value - a.mean) + b.mass * (value - b.mean)
        a, b = self._moments.halves(start, stop)
        above = a.mass * (a.mean - value) + b.mass * (b.mean - value)
        # An empty run has no halves; the values from the table belong to other labels.
        return np.where(end > first, below, 0.0) + np.where(start < stop, above, 0.0)

    def _median(self, first: Ints, stop: Ints) -> Ints:
        """Position of the weighted median, in O(log n).

        Walking up through the cumulative prior F, the slope of the objective is
        b·(F − ½) + s·(clip(F − F_first, 0, P) − P/2), P being the bin's mass; it is solved for F.
        Mass below 1e-16 is lost in F. It matters only to outputs at ε > 36, where b is as small.
        """
        start, end = self._cumulative[first], self._cumulative[stop]
        pull = 0.5 * self._stay * (end - start)
        b = self._outside
        level = start + (pull + b * (0.5 - start))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            beyond = np.where(b * (0.5 - end) >= pull, 0.5 - pull / b, level)
            level = np.where(b * (start - 0.5) >= pull, 0.5 + pull / b, beyond)
        at = np.searchsorted(self._cumulative[1:], level)
        return np.asarray(np.minimum(at, self.size - 1))

    def excess(self, first: Ints, stop: Ints) -> Floats:
        at = self._median(first, stop)
        inside = self._distance(first, stop, at)
        return self._stay * inside + self._outside * self._above_base[at]

    def values(self, first: Ints, stop: Ints) -> Floats:
        return np.asarray(self._labels[self._median(first, stop)])


def bin_costs(loss: BinLoss, labels: Floats, prior: Floats, epsilon: float) -> BinCosts:
    """Bin costs of a loss.

    Args:
        loss: its name.
        labels: [n] finite, strictly increasing.
        prior: [n] positive, summing to 1.
        epsilon: privacy parameter ε > 0.

    Raises:
        ValueError: the loss is unknown.
    """
    if loss == "absolute":
        return _AbsoluteCosts(labels, prior, epsilon)
    scale = _scale_of(labels)
    if loss == "squared":
        origin = float(labels[0] + prior @ (labels - labels[0]))
        return _MeanCosts(labels, prior, epsilon, squared_divergence, origin, scale * scale)
    if loss == "poisson":
        positive = labels > 0
        y, p = labels[positive], prior[positive]
        shift = float(p @ (y - y * np.log(y)))
        return _MeanCosts(labels, prior, epsilon, poisson_divergence, 0.0, scale, shift)
    raise ValueError(f"unknown loss {loss!r}: use one of squared, absolute, poisson")


def _scale_of(labels: Floats) -> float:
    """A power of two near the largest distance between labels: dividing by it is exact."""
    return float(np.ldexp(1.0, np.frexp(labels[-1] - labels[0])[1] - 1))
