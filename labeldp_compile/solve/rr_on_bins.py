"""RR-on-Bins: the best of all ε-DP label randomizers, as a least-weight subsequence.

A least-weight subsequence is the cheapest way to cut 0..n into runs, if longer runs cost more.

The weight of a run may be any non-negative function that never falls when the run is extended. The
costs of RR-on-Bins have this property. They are not Monge, so the usual shortcuts would be wrong.

Cutting positions are put into blocks. A run from one block to another costs at least as much as its
part between the blocks, so shortest paths over blocks bound every cut from below. Each step drops
the blocks, and the pairs of blocks, that no good cut can use, and halves some of the others.
Between blocks of one position, the bound is the cost itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from labeldp_verify.analysis import Loss
from numpy.typing import NDArray

from labeldp_compile.solve.losses import LOSSES, BinCosts, Floats, Ints, bin_costs

Weight = Callable[[Ints, Ints], Floats]

_CHUNK = 1 << 15  # runs whose weights are computed together, so that they stay in the cache
_KEEP = 1 << 22  # weights that are kept for the next pass, at most


@dataclass(frozen=True, eq=False)
class Cuts:
    """Blocks of cutting positions in increasing order, and which blocks may hold consecutive cuts.

    The first block is position 0 alone, the last block is position n alone.

    Attributes:
        first: [m] smallest position of each block.
        last: [m] largest position of each block.
        low: [m] the cut before one in block t lies in one of the blocks low[t]..high[t].
        high: [m] at most t; equal to t if both cuts may lie in block t.
    """

    first: Ints
    last: Ints
    low: Ints
    high: Ints

    @staticmethod
    def blocks(size: int, count: int) -> Cuts:
        """The positions 0..size in about `count` blocks, every pair allowed."""
        edges = np.unique(np.linspace(1, size, count + 1).astype(np.int64))
        first = np.concatenate([[0], edges])
        last = np.concatenate([[0], edges[1:] - 1, [size]])
        own = np.arange(first.size)
        return Cuts(first, last, np.zeros_like(own), np.where(first < last, own, own - 1))

    @property
    def exact(self) -> bool:
        """Whether every block is one position, so that bounds are costs."""
        return bool((self.first == self.last).all())

    def middles(self) -> Cuts:
        """The middle position of each block alone."""
        middle = (self.first + self.last) // 2
        high = np.minimum(self.high, np.arange(middle.size) - 1)
        return Cuts(middle, middle, self.low, high)

    def halve(self, split: NDArray[np.bool_]) -> Cuts:
        """Split the chosen blocks, each of more than one position, in two."""
        middle = (self.first + self.last) // 2
        parent = np.repeat(np.arange(split.size), 1 + split)
        own = np.arange(parent.size)
        second = np.append(False, parent[1:] == parent[:-1])
        first = np.where(second, middle[parent] + 1, self.first[parent])
        last = np.where(split[parent] & ~second, middle[parent], self.last[parent])
        youngest = np.cumsum(1 + split) - 1
        low = (youngest - split)[self.low[parent]]
        inside = np.where(first < last, own, own - 1)
        high = np.where(self.high[parent] == parent, inside, youngest[self.high[parent]])
        high[0] = -1
        return Cuts(first, last, low, high)

    def keep(self, alive: NDArray[np.bool_]) -> Cuts:
        """Drop the other blocks."""
        before = np.concatenate([[0], np.cumsum(alive)])
        low, high = before[self.low], before[self.high + 1] - 1
        return Cuts(self.first[alive], self.last[alive], low[alive], high[alive])


@dataclass(frozen=True, eq=False)
class Paths:
    """Shortest paths from the first block, by least weights.

    Attributes:
        weight: [m] of the path to each block; inf if there is none.
        previous: [m] the block before it on that path.
    """

    weight: Floats
    previous: Ints

    def best(self) -> Ints:
        """Blocks on the path to the last block, both ends included."""
        path = [self.previous.size - 1]
        while path[-1]:
            path.append(int(self.previous[path[-1]]))
        return np.array(path[::-1])


class WeightedRuns:
    """The runs that `cuts` allows, with their least weights."""

    def __init__(self, cuts: Cuts, weight: Weight) -> None:
        """`weight(start, stop)` gives the weights of runs, elementwise."""
        self.cuts = cuts
        self._weight = weight
        own = np.arange(cuts.high.size)
        self._count = np.maximum(np.minimum(cuts.high, own - 1) - cuts.low + 1, 0)
        self._end = np.cumsum(self._count)
        self._kept: dict[int, Floats] = {}

    def shortest(self, penalty: float) -> Paths:
        """Shortest paths when every run costs its least weight plus `penalty` >= 0.

        Of equally short paths into a block it takes one with the longest last run.
        """
        weight = np.full(self._end.size, np.inf)
        weight[0] = 0.0
        previous = np.zeros(self._end.size, dtype=np.int64)
        for block, start, stop, weights in self._into_blocks(backward=False):
            total = weight[start:stop] + weights
            at = int(total.argmin())
            previous[block] = start + at
            weight[block] = total[at] + penalty
        return Paths(weight, previous)

    def narrow(self, penalty: float, budget: float) -> Cuts:
        """Drop blocks that no cuts of weight at most `budget` use; halve some of the others."""
        paths = self.shortest(penalty)
        cuts = self._allowed(penalty, budget, paths)
        # The error of the bounds at a block: a run to its end, minus a run to its beginning.
        before = self.cuts.last[paths.previous[1:]]
        slack = np.zeros(self._end.size)
        slack[1:] = self._weight(before, self.cuts.last[1:])
        slack[1:] -= self._weight(before, self.cuts.first[1:])
        alive = cuts.high >= cuts.low
        alive[0] = True
        cuts, slack = cuts.keep(alive), slack[alive]
        wide = cuts.first < cuts.last
        if not wide.any():
            return cuts
        # The worst blocks decide the bound: long tails with little mass can wait.
        limit = min(slack[wide].max() / 4.0, np.quantile(slack[wide], 0.75))
        return cuts.halve(wide & (slack >= limit))

    def _allowed(self, penalty: float, budget: float, paths: Paths) -> Cuts:
        """These blocks without the pairs that no path of weight at most `budget` uses."""
        cuts, size = self.cuts, self._end.size
        remaining = np.full(size, np.inf)
        remaining[-1] = 0.0
        low, high = cuts.low.copy(), cuts.low - 1
        for block, start, stop, weights in self._into_blocks(backward=True):
            through = weights + (remaining[block] + penalty)
            good = np.flatnonzero(paths.weight[start:stop] + through <= budget)
            if good.size == 0:
                continue
            # Keep all from the first to the last good one: the blocks before are a range.
            low[block], high[block] = start + good[0], start + good[-1]
            kept = slice(low[block], high[block] + 1)
            np.minimum(remaining[kept], through[good[0] : good[-1] + 1], out=remaining[kept])
        own = np.arange(size)
        inside = (cuts.high == own) & (paths.weight + remaining + penalty <= budget)
        return Cuts(cuts.first, cuts.last, low, np.where(inside, own, high))

    def _into_blocks(self, *, backward: bool) -> Iterator[tuple[int, int, int, Floats]]:
        """For every block with a block before it: itself, the range before it, least weights."""
        step = -1 if backward else 1
        for begin, end in self._chunks()[::step]:
            weights = self._least_weights(begin, end)
            start = self.cuts.low[begin:end].tolist()
            count = self._count[begin:end].tolist()
            after = (self._end[begin:end] - (self._end[begin] - count[0])).tolist()
            for j in range(end - begin)[::step]:
                if count[j]:
                    part = weights[after[j] - count[j] : after[j]]
                    yield begin + j, start[j], start[j] + count[j], part

    def _chunks(self) -> list[tuple[int, int]]:
        """Ranges of blocks with at most _CHUNK runs into them, or of one block."""
        edges = [0]
        while edges[-1] < self._end.size:
            done = self._end[edges[-1]] - self._count[edges[-1]]
            stop = int(np.searchsorted(self._end, done + _CHUNK, side="right"))
            edges.append(max(stop, edges[-1] + 1))
        return list(pairwise(edges))

    def _least_weights(self, begin: int, end: int) -> Floats:
        """Weights into the blocks begin..end−1, by block and then by the one before."""
        if begin in self._kept:
            return self._kept[begin]
        count = self._count[begin:end]
        into = np.repeat(np.arange(begin, end), count)
        skipped = np.cumsum(count) - count
        out_of = np.arange(into.size) + np.repeat(self.cuts.low[begin:end] - skipped, count)
        weights = self._weight(self.cuts.last[out_of], self.cuts.first[into])
        if self._end[-1] <= _KEEP:
            self._kept[begin] = weights
        return weights


# RR-on-Bins: the best of all ε-DP label randomizers, for a prior and a loss.
#
# "Regression with Label Differential Privacy" (Ghazi et al., ICLR 2023). Algorithm 1 randomizes the
# bin of a label. By Theorem 5 the best bins are as good as any ε-DP mechanism. Algorithm 2 finds
# them by dynamic programming over labels and number of bins. Here the number of bins is not a
# dimension: the loss is a ratio, which Dinkelbach's iteration minimizes over least-weight
# subsequences.
#
# With b = e^−ε, d bins of cost c₁ … c_d (see `bin_costs`) lose Σ cⱼ / (1 + (d − 1)·b).


_DIRECT = 512  # up to this many labels, the costs of all bins are computed
_BLOCKS = 32  # blocks that the search starts from otherwise
_TIE = 1e-13  # losses that differ by less, relatively, are the same
_LARGEST = 1e150  # of a label: squares stay finite
_SLACK = 1e-9  # relative room for rounding when bins are ruled out


@dataclass(frozen=True, eq=False)
class BinsSolution:
    """The best bins and their outputs.

    Attributes:
        starts: [d] index of the first label in each bin, increasing; starts[0] == 0.
        values: [d] output of each bin, in label units, strictly increasing.
        loss: noisy label loss E ℓ(output, label) under the prior, in units of the loss.
    """

    starts: Ints
    values: Floats
    loss: float


def solve_rr_on_bins(labels: Floats, prior: Floats, epsilon: float, loss: Loss) -> BinsSolution:
    """Find the bins and outputs of RR-on-Bins with the least noisy label loss.

    The result is exact up to rounding, which is far below 1e-9 of the loss for ε <= 30; larger ε
    are also safe. Among equally good bins it uses few. A label of prior 0 between two bins joins
    the one whose output has the lower loss for it.

    Args:
        labels: [k] strictly increasing, within ±1e150; not negative if the loss needs that.
        prior: [k] finite, not negative, not all 0; normalized here.
        epsilon: privacy parameter ε >= 0 of the randomizer.
        loss: one with costs of bins: at most O(k²) steps and O(k log k) memory.

    Returns:
        The best bins: Pr[vⱼ | y] is e^ε / (e^ε + d − 1) if y is in bin j, else 1 / (e^ε + d − 1).

    Raises:
        ValueError: labels beyond ±1e150, or negative ones with a loss that has none.
    """
    labels, prior = np.asarray(labels, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if not (np.abs(labels) <= _LARGEST).all():
        raise ValueError(f"labels must be at most {_LARGEST:g} in absolute value")
    if LOSSES[loss].positive and labels[0] < 0:
        raise ValueError(f"the {loss} loss needs labels that are not negative")
    prior = prior / prior.max()
    # What is left stays positive when it is divided by the sum.
    support = np.flatnonzero(prior > np.finfo(np.float64).tiny)
    y, p = labels[support], prior[support]
    costs = bin_costs(loss, y, p / p.sum(), epsilon)
    cuts, values = _increasing(costs, _Search(costs, epsilon).run())
    values = np.clip(values, y[0], y[-1])
    total = _ratio(costs, float(np.exp(-epsilon)), cuts) * costs.unit + costs.shift
    bins = _bins_of_all(labels, support, cuts, values, loss)
    return BinsSolution(np.searchsorted(bins, np.arange(values.size)), values, total)


def _ratio(costs: BinCosts, b: float, cuts: Ints) -> float:
    """Scaled loss of the bins between consecutive cuts: what is minimised."""
    count = cuts.size - 1
    excess = float(costs.excess(cuts[:-1], cuts[1:]).sum())
    return (excess + count * b * costs.base) / (1.0 + (count - 1) * b)


class _Search:
    """Dinkelbach's iteration: the least ratio N/D is the λ at which the least N − λ·D is 0.

    N − λ·D = Σⱼ (excessⱼ + b·(base − λ)) − (1 − b)·λ: a sum over bins, a least-weight subsequence.
    """

    def __init__(self, costs: BinCosts, epsilon: float) -> None:
        self._costs = costs
        self._b = float(np.exp(-epsilon))
        self._stay = float(-np.expm1(-epsilon))
        self._cuts = np.array([0, costs.size])
        self._lowest = costs.base

    def run(self) -> Ints:
        """Cuts [d + 1] of the best bins."""
        if self._lowest <= 0.0 or self._one_bin_is_best():
            return self._cuts
        size = self._costs.size
        cuts = Cuts.blocks(size, size if size <= _DIRECT else _BLOCKS)
        while not cuts.exact:
            middles = cuts.middles()
            paths = WeightedRuns(middles, self._costs.excess).shortest(self._penalty(self._lowest))
            self._improve(middles.first[paths.best()])
            # What is ruled out at this λ, N − λ·D > 0, is ruled out at any smaller one. The
            # second term covers the rounding of the penalty when 1 − b is tiny.
            budget = self._lowest * (self._stay * (1.0 + _SLACK) + _TIE)
            runs = WeightedRuns(cuts, self._costs.excess)
            cuts = runs.narrow(self._penalty(self._lowest), budget)
        self._iterate(cuts)
        return self._cuts

    def _one_bin_is_best(self) -> bool:
        """Whether some cheap argument says that no bins beat a constant.

        First, the loss of any ε-DP mechanism is at least e^−ε of that of a constant. Second, an
        output v below the constant v* helps a bin only through labels that prefer v, which are the
        lowest ones. So if v* is best for all bins of lowest labels, and of highest labels, it is
        best for every bin.
        """
        if self._costs.size == 1 or self._stay <= _TIE:
            return True
        every = np.arange(self._costs.size)
        lowest = self._costs.values(np.zeros_like(every), every + 1)
        highest = self._costs.values(every, np.full_like(every, every.size))
        return bool((lowest == highest[0]).all() and (highest == highest[0]).all())

    def _penalty(self, ratio: float) -> float:
        return max(self._b * (self._costs.base - ratio), 0.0)

    def _improve(self, cuts: Ints) -> bool:
        ratio = _ratio(self._costs, self._b, cuts)
        if ratio >= self._lowest * (1.0 - _TIE):
            return False
        self._cuts, self._lowest = cuts, ratio
        return True

    def _iterate(self, cuts: Cuts) -> None:
        """Find the best of the given cuts, one position a block."""
        runs = WeightedRuns(cuts, self._costs.excess)
        improved = True
        while improved:
            # A λ lower by the tie makes every bin cost a little more: ties go to fewer bins.
            paths = runs.shortest(self._penalty(self._lowest * (1.0 - _TIE)))
            best = cuts.first[paths.best()]
            improved = self._improve(best)
        tied = _ratio(self._costs, self._b, best) <= self._lowest * (1.0 + 10.0 * _TIE)
        if tied and best.size < self._cuts.size:
            self._cuts = best


def _increasing(costs: BinCosts, cuts: Ints) -> tuple[Ints, Floats]:
    """Outputs of the bins, after merging neighbours that do not rise.

    In optimal bins such neighbours share a best output v. Then one bin is at least as good: it
    saves b·L(v) >= b·λ in the numerator and b in the denominator.
    """
    while True:
        values = costs.values(cuts[:-1], cuts[1:])
        rising = values[1:] > values[:-1]
        if rising.all():
            return cuts, values
        cuts = cuts[np.concatenate([[True], rising, [True]])]


def _bins_of_all(labels: Floats, support: Ints, cuts: Ints, values: Floats, loss: Loss) -> Ints:
    """Bin of every label [k], not decreasing; `cuts` counts the labels in `support` only."""
    bin_of = np.searchsorted(cuts[1:], np.arange(support.size), side="right")
    every = np.arange(labels.size)
    above = np.minimum(np.searchsorted(support, every), support.size - 1)
    below = np.maximum(np.searchsorted(support, every, side="right") - 1, 0)
    upper, lower = bin_of[above], bin_of[below]
    at = np.flatnonzero(lower < upper)
    above_loss, below_loss = (LOSSES[loss].of(values[b[at]], labels[at]) for b in (upper, lower))
    up = above_loss < below_loss
    bins = lower
    bins[at[up]] = upper[at[up]]
    # Except for rounding they already rise: labels that prefer the upper output are above others.
    return np.maximum.accumulate(bins)
