"""The costs of the bins of RR-on-Bins, by loss, and the moments of runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Divergence = Callable[[Floats, Floats], Floats]


def squared_divergence(label: Floats, mean: Floats | float) -> Floats:
    """½(y − v)², broadcast."""
    gap = label - mean
    return np.asarray(0.5 * gap * gap)


def poisson_divergence(label: Floats, mean: Floats) -> Floats:
    """y·log(y/v) − y + v ≥ 0, accurate relative to itself also where y is close to v.

    ``label`` y ≥ 0 and ``mean`` v ≥ 0 are broadcast. It is the Poisson loss above its minimum.
    """
    gap = label - mean
    total = label + mean
    z = gap / np.where(total > 0, total, 1.0)
    # log(y/v) = 2·artanh(z): the first terms are cancelled by hand, not in floating point.
    square = z * z
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))
    near = gap * z * (1.0 + (1.0 + z) * z * series)
    tiny = np.finfo(np.float64).tiny
    with np.errstate(all="ignore"):  # tiny over a very large mean is 0
        logs = label * np.log(np.maximum(label, tiny) / np.maximum(mean, tiny))
    far = np.where(label > 0, logs, 0.0) - gap
    return np.where(np.abs(z) < 0.02, near, far)


# Mass, mean and spread of any run of labels, in constant time and without cancellation.
#
# Differences of prefix sums are accurate enough only for small ε. At large ε, an optimal bin costs
# about e^−ε of the terms that such differences subtract, so at ε = 30 thirteen digits would be
# lost. A disjoint sparse table only adds non-negative terms, so its numbers have full relative
# accuracy.


class Moments(NamedTuple):
    """Moments of several runs of labels.

    Attributes:
        mass: [...] sum of the weights.
        mean: [...] weighted mean of the labels; 0 where the mass is 0.
        spread: [...] weighted sum of divergence(label, mean).
    """

    mass: Floats
    mean: Floats
    spread: Floats

    def take(self, where: Ints | NDArray[np.bool_]) -> Moments:
        """Pick entries by index."""
        return Moments(self.mass[where], self.mean[where], self.spread[where])


def _join(a: Moments, b: Moments, divergence: Divergence) -> Moments:
    """Moments of the union of disjoint runs: a Bregman spread is a sum of non-negative parts.

    The parallel variance formula of Chan, Golub and LeVeque (1979), for any Bregman divergence.
    """
    mass = a.mass + b.mass
    share = b.mass / np.where(mass > 0, mass, 1.0)
    mean = a.mean + share * (b.mean - a.mean)
    between = a.mass * divergence(a.mean, mean) + b.mass * divergence(b.mean, mean)
    return Moments(mass, mean, a.spread + b.spread + between)


class RangeMoments:
    """Disjoint sparse table over n weighted labels: O(n log n) memory, O(1) a query.

    At level l the positions fall into aligned blocks of 2^l. Row l of `_after` describes the run
    from a position to the end of its block, row l of `_before` the run from the start of the block
    up to the position. A run [first, stop) is cut at the one boundary of blocks inside it at the
    level of the highest bit in which first and stop differ.
    """

    def __init__(self, labels: Floats, weights: Floats, divergence: Divergence) -> None:
        """Build the table.

        Args:
            labels: [n] increasing.
            weights: [n] positive.
            divergence: Bregman divergence D(label, mean), elementwise; D(x, x) = 0.
        """
        size = labels.size
        self._row = size + 1
        positions = np.arange(size + 1)
        nothing = np.zeros(1)
        after = Moments(np.append(weights, nothing), np.append(labels, nothing), np.zeros(size + 1))
        before = Moments(*np.zeros((3, size + 1)))
        rows_after, rows_before = [after], [before]
        for level in range(size.bit_length() - 1):
            width = 1 << level
            right = (positions & width) != 0
            start = positions & -width
            # A block past the end is empty, and so is the run from position `size`.
            following = np.minimum(start + width, size)
            joined_after = _join(after, after.take(following), divergence)
            joined_before = _join(after.take(np.maximum(start - width, 0)), before, divergence)
            after = _select(right, after, joined_after)
            before = _select(right, joined_before, before)
            rows_after.append(after)
            rows_before.append(before)
        self._after, self._before = _stack(rows_after), _stack(rows_before)
        # Highest set bit of every number up to the largest first ^ stop, times the row length.
        reach = np.arange(1 << size.bit_length())
        self._offset = np.maximum(np.frexp(reach.astype(np.float64))[1] - 1, 0) * self._row

    def halves(self, first: Ints, stop: Ints) -> tuple[Moments, Moments]:
        """Moments of two consecutive parts of the runs [first, stop), first < stop; elementwise.

        The second part may be empty (mass 0).
        """
        offset = self._offset[first ^ stop]
        return self._after.take(offset + first), self._before.take(offset + stop)


def _select(condition: NDArray[np.bool_], yes: Moments, no: Moments) -> Moments:
    return Moments(*(np.where(condition, y, n) for y, n in zip(yes, no, strict=True)))


def _stack(rows: list[Moments]) -> Moments:
    return Moments(*map(np.concatenate, zip(*rows, strict=True)))


# The cost of one bin of RR-on-Bins, by loss.
#
# With b = e^−ε, s = 1 − b and L(v) = Σ p_y ℓ(v, y), a bin S costs
# min_v b·L(v) + s·Σ_{y∈S} p_y ℓ(v, y): the entry L[r][i] of Algorithm 2 in "Regression with Label
# Differential Privacy" (ICLR 2023), divided by e^ε. Two constants are subtracted before anything is
# added up, because at large ε they would hide the rest: ℓ(y, y), which is part of every mechanism's
# loss, and b·min L, which is part of every bin's cost. The remainder, the *excess*, is non-negative
# and does not fall when a bin grows.


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


class MeanCosts(BinCosts):
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
        """Of labels [n] with a positive prior [n], less ``origin``, in units near their range."""
        super().__init__(labels.size, epsilon, unit, shift)
        self._divergence, self._origin, self._scale = divergence, origin, scale_of(labels)
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
        """As of every loss."""
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
        """As of every loss."""
        return self._value(*self._moments.halves(first, stop)) * self._scale + self._origin


class SidedCosts(BinCosts):
    """ℓ = under·(y − v)⁺ + over·(v − y)⁺: the best output is a quantile, always one of the labels.

    With both 1 it is |v − y|, and the quantile is the median.
    """

    def __init__(
        self,
        labels: Floats,
        prior: Floats,
        epsilon: float,
        under: float = 1.0,
        over: float = 1.0,
    ) -> None:
        """Of labels [n] with a positive prior [n]."""
        super().__init__(labels.size, epsilon, scale_of(labels))
        self._under, self._over = under, over
        self._share = under / (under + over)
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
        """Σ p_y ℓ(v, y) over the labels first..stop−1, v being label number `at`."""
        value = self._scaled[at]
        # Without the label itself: with it, a mean would be too close to v if its weight is large.
        end, start = np.clip(at, first, stop), np.clip(at + 1, first, stop)
        a, b = self._moments.halves(first, end)
        below = a.mass * (value - a.mean) + b.mass * (value - b.mean)
        a, b = self._moments.halves(start, stop)
        above = a.mass * (a.mean - value) + b.mass * (b.mean - value)
        # An empty run has no halves; the values from the table belong to other labels.
        below = np.where(end > first, self._over * below, 0.0)
        return below + np.where(start < stop, self._under * above, 0.0)

    def _quantile(self, first: Ints, stop: Ints) -> Ints:
        """Position of the weighted quantile q = under/(under + over), in O(log n).

        Walking up through the cumulative prior F, the slope of the objective is
        b·(F − q) + s·(clip(F − F_first, 0, P) − q·P), P being the bin's mass; it is solved for F.
        Mass below 1e-16 is lost in F. It matters only to outputs at ε > 36, where b is as small.
        """
        start, end = self._cumulative[first], self._cumulative[stop]
        q, b = self._share, self._outside
        pull, push = (part * self._stay * (end - start) for part in (q, 1.0 - q))
        level = start + (pull + b * (q - start))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            beyond = np.where(b * (q - end) >= push, q - push / b, level)
            level = np.where(b * (start - q) >= pull, q + pull / b, beyond)
        at = np.searchsorted(self._cumulative[1:], level)
        return np.asarray(np.minimum(at, self.size - 1))

    def excess(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss."""
        at = self._quantile(first, stop)
        inside = self._distance(first, stop, at)
        return self._stay * inside + self._outside * self._above_base[at]

    def values(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss."""
        return np.asarray(self._labels[self._quantile(first, stop)])


_TABLE = 4_000_000  # entries
_MOST_OUTPUTS, _FEWEST_OUTPUTS = 8192, 128
_SECTIONS = 70  # of a golden section, which leaves less than 1e-14 of the interval
_ROUNDS = 50
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class ConvexCosts(BinCosts):
    """Costs by table, of any loss that falls towards the label and is convex.

    The outputs are those of a grid, until ``settled`` moves the chosen ones.

    An entry is the loss of an output, summed from the output to a label. So the loss of a bin that
    holds the output is a sum of two numbers ≥ 0, and nothing cancels.
    """

    def __init__(
        self,
        labels: Floats,
        prior: Floats,
        epsilon: float,
        of: Callable[[Floats, Floats], Floats],
    ) -> None:
        """Of labels [n] with a positive prior [n], for the loss ``of`` outputs and labels.

        Raises ValueError if a loss is not finite.
        """
        super().__init__(labels.size, epsilon, 1.0)
        self._labels, self._prior, self._of = labels, prior, of
        self._grid = _grid(labels)
        costs = prior * of(self._grid[:, None], labels)
        if not np.isfinite(costs.sum()):
            raise ValueError("the losses of these labels are too large: use smaller units")
        above = labels >= self._grid[:, None]
        self._table = np.zeros((self._grid.size, labels.size + 1))
        np.cumsum(np.where(above, costs, 0.0), axis=1, out=self._table[:, 1:])
        below = np.where(above, 0.0, costs)[:, ::-1].cumsum(axis=1)[:, ::-1]
        self._table[:, :-1] -= below
        self._all = self._table[:, -1] - self._table[:, 0]
        self.base = float(self._all.min())

    def _costs(self, at: Ints, first: Ints, stop: Ints) -> Floats:
        inside = self._table[at, stop] - self._table[at, first]
        return np.asarray(self._stay * inside + self._outside * (self._all[at] - self.base))

    def _best(self, first: Ints, stop: Ints) -> Ints:
        """The best output on the grid: the costs are convex, so halving finds it."""
        low = np.zeros_like(first)
        high = np.full_like(first, self._grid.size - 1)
        while (low < high).any():
            middle = (low + high) // 2
            after = np.minimum(middle + 1, self._grid.size - 1)
            falls = self._costs(after, first, stop) < self._costs(middle, first, stop)
            low, high = np.where(falls, after, low), np.where(falls, high, middle)
        return low

    def excess(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss."""
        return self._costs(self._best(first, stop), first, stop)

    def values(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss, on the grid."""
        return np.asarray(self._grid[self._best(first, stop)])

    def settled(self, cuts: Ints) -> tuple[Ints, Floats, float]:
        """Bins near these, their best outputs of all numbers, and the loss of RR-on-Bins.

        Outputs and bins are improved in turns: each bin gets its best output, and each label the
        bin whose output is better for it.
        """
        for _ in range(_ROUNDS):
            values = self._outputs(cuts)
            kept = np.append(True, np.diff(values) > 0.0)
            losses = self._of(values[kept][:, None], self._labels)
            bins = np.maximum.accumulate(losses.argmin(axis=0))
            before, cuts = cuts, np.append(np.unique(bins, return_index=True)[1], self.size)
            if np.array_equal(before, cuts):
                break
        else:
            values = self._outputs(cuts)
        costs = (self._weights(cuts) * self._of(values[:, None], self._labels)).sum()
        return cuts, values, float(costs) / (1.0 + (values.size - 1) * self._outside)

    def _weights(self, cuts: Ints) -> Floats:
        """[d, n] of a label in the cost of a bin."""
        bins = np.searchsorted(cuts, np.arange(self.size), side="right") - 1
        inside = bins == np.arange(cuts.size - 1)[:, None]
        return np.asarray(self._prior * np.where(inside, 1.0, self._outside))

    def _outputs(self, cuts: Ints) -> Floats:
        """The best output of each bin, by golden sections around the one on the grid."""
        weights, at = self._weights(cuts), self._best(cuts[:-1], cuts[1:])
        low = self._grid[np.maximum(at - 1, 0)]
        high = self._grid[np.minimum(at + 1, self._grid.size - 1)]

        def cost(v: Floats) -> Floats:
            return np.asarray((weights * self._of(v[:, None], self._labels)).sum(axis=1))

        best, least = self._grid[at], cost(self._grid[at])
        for _ in range(_SECTIONS):
            wide = _GOLDEN * (high - low)
            left, right = high - wide, low + wide
            on_left, on_right = cost(left), cost(right)
            for value, found in ((left, on_left), (right, on_right)):
                best = np.where(found < least, value, best)
                least = np.minimum(found, least)
            falls = on_right < on_left
            low, high = np.where(falls, left, low), np.where(falls, high, right)
        return best


def _grid(labels: Floats) -> Floats:
    """Candidates for outputs: the labels and points between them, or some of very many labels."""
    most = min(max(_TABLE // labels.size, _FEWEST_OUTPUTS), _MOST_OUTPUTS)
    if labels.size >= most:
        return np.asarray(labels[np.linspace(0, labels.size - 1, most).astype(np.int64)])
    parts = max((most - 1) // max(labels.size - 1, 1), 1)
    steps = np.arange(parts) / parts
    inner = (labels[:-1, None] + np.diff(labels)[:, None] * steps).ravel()
    return np.append(inner, labels[-1])


def scale_of(labels: Floats) -> float:
    """A power of two near the largest distance between labels: dividing by it is exact."""
    return float(np.ldexp(1.0, np.frexp(labels[-1] - labels[0])[1] - 1))
