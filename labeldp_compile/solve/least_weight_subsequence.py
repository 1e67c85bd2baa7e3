"""Least-weight subsequence: the cheapest way to cut 0..n into runs, if longer runs cost more.

The weight of a run may be any non-negative function that never falls when the run is extended. The
costs of RR-on-Bins have this property. They are not Monge, so the usual shortcuts would be wrong.

Cutting positions are put into blocks. A run from one block to another costs at least as much as its
part between the blocks, so shortest paths over blocks bound every cut from below. Blocks and pairs
of blocks that no good cut can use are dropped, some of the others are halved, and so on. Between
blocks of one position, the bound is the cost itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.solve.losses import Floats, Ints

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
        """The same blocks without the pairs that no path of weight at most `budget` uses."""
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
