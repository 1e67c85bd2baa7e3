"""RR-on-Bins: the best of all ε-DP label randomizers, as a least-weight subsequence.

A least-weight subsequence is the cheapest way to cut 0..n into runs, if longer runs cost more.

The weight of a run may be any non-negative function that never falls when the run is extended. The
costs of RR-on-Bins have this property. They are not Monge, so the usual shortcuts would be wrong.

Cutting positions are put into blocks. A run from one block to another costs at least as much as its
part between the blocks, so shortest paths over blocks bound every cut from below. Each step drops
the blocks, and the pairs of blocks, that no good cut can use, and halves some of the others.
Between blocks of one position, the bound is the cost itself.

Multipliers prove it the best of all ε-DP randomizers, for every loss here. By Theorem 5
of "Regression with Label Differential Privacy" (Ghazi et al., ICLR 2023) and strong duality there
are numbers α [k] whose sum is the loss λ of RR-on-Bins, with

    F(v) = Σ_y h_y(v) + E·Σ_y min(h_y(v), 0) ≥ 0 for all real v,

h_y(v) = p_y·g(v, y) − α_y, E = e^ε − 1. Between the roots of the h_y (for the absolute loss, and
the labels) F is one quadratic or line for the squared and the absolute loss; for others, F is
computed on a fine grid. Let bin j have the labels S_j, the output v_j and the cost
c_j = Σ_y p_y·(1 + E·1[y ∈ S_j])·g(v_j, y). Complementary slackness says of y in bin j

    p_y·g(v_j, y) ≤ α_y ≤ min over i ≠ j of p_y·g(v_i, y)  and  Σ over S_j of α_y = (c_j − λ)/E.

Two points inside this box have a closed form, and often one is optimal. If not, it is moved until
the negative minima of F are zero, which mostly reaches an optimum within a few steps. Otherwise
linear programs continue: F is concave in α, so each negative minimum gives a cut, a linear
inequality that an optimum satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from labeldp_verify.analysis import Loss
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.solve.bin_costs import BinCosts, ConvexCosts, Floats, Ints
from labeldp_compile.solve.losses import LOSSES, LossRecord, bin_costs
from labeldp_compile.solve.optimal_unbiased.dual import even_roots, local_places, price

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

    @property
    def pairs(self) -> Ints:
        """[m] how many other blocks may hold the cut before one in each block."""
        return np.maximum(np.minimum(self.high, np.arange(self.high.size) - 1) - self.low + 1, 0)

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
        self._count = cuts.pairs
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
    are also safe. Of a loss without a closed form, bins are chosen for outputs on a fine grid; then
    outputs and bins are improved in turns. Among equally good bins it uses few. A label of prior 0
    between two bins joins the one whose output has the lower loss for it.

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
    cuts, values = _increasing(costs, _Search(y, costs, epsilon).run())
    if isinstance(costs, ConvexCosts):
        cuts, values, total = costs.settled(cuts)
    else:
        total = _ratio(costs, float(np.exp(-epsilon)), cuts) * costs.unit + costs.shift
    values = np.clip(values, y[0], y[-1])
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

    def __init__(self, labels: Floats, costs: BinCosts, epsilon: float) -> None:
        self._labels, self._costs = labels, costs
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
            if cuts.pairs.sum() > _KEEP:  # rarely needed, and ties would be broken differently
                cuts = cuts.keep(self._between_outputs(cuts))
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

    def _between_outputs(self, cuts: Cuts) -> NDArray[np.bool_]:
        """Which blocks a best cut can be in: the ends, and those between the extreme outputs.

        The lowest output belongs to a bin of lowest labels, and labels below it prefer it to all
        others. So no cut is needed between labels below the lowest output of all such bins. With
        many labels and a small ε, this leaves few of them.
        """
        every = np.arange(self._costs.size)
        low = self._costs.values(np.zeros_like(every), every + 1).min()
        high = self._costs.values(every, np.full_like(every, every.size)).max()
        first, last = np.searchsorted(self._labels, [low, high])
        inside = (cuts.last >= first - 1) & (cuts.first <= last + 1)
        inside[[0, -1]] = True
        return inside

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


_TIGHT = 1e-13  # relative gap at which the search ends
_CLOSE = 1e-10  # relative gap at which no cuts are added
_MOST_LABELS = 401  # labels of positive prior; beyond, no linear programs are tried
_HIGHEST = 200.0  # ε; beyond, e^ε is out of range, and a bound of 0 as good as any
_PROJECTIONS = 8  # of each point
_MINIMA = 64  # of F that one projection deals with
_ROW_ENTRIES = 10**6  # of the system of a projection, at most
_COARSE_LABELS = 5_000
_SHRINKS = 40
_ROUNDS = 12  # of cuts, at most
_FINER = 65  # steps around a minimum on that grid
_PLACES, _PARTS = 4_000, 200  # of the grid on which F is computed; between neighbouring labels


def dual_of_rr_on_bins(
    labels: Floats, prior: Floats, epsilon: float, loss: Loss, solution: BinsSolution
) -> NDArray[np.float64]:
    """Find multipliers that prove a bound close to the loss of RR-on-Bins, mostly equal to it.

    Up to 401 labels of positive prior the bound was within 1e-10 of the loss in all cases tried;
    beyond, some are loose. Losses below 1e-16 of the largest are lost in rounding.

    Args:
        labels: [k] increasing. prior: [k] finite, not negative, not all 0; normalized here.
        epsilon: ε ≥ 0 of the randomizer. loss: one with costs of bins.
        solution: the answer of `solve_rr_on_bins` to the same problem.

    Returns:
        α [k] in units of the loss, 0 where the prior is, with F ≥ 0 up to rounding, or of a loss
        without a closed form on a fine grid. Σα bounds the
        loss of every ε-DP randomizer from below, even if ``solution`` is not the best.
    """
    labels, prior = np.asarray(labels, np.float64), np.asarray(prior, np.float64)
    alpha = np.zeros(labels.size)
    held = prior > prior.max() * np.finfo(np.float64).tiny
    bin_of = np.searchsorted(solution.starts, np.arange(labels.size), side="right") - 1
    kept, bins = np.unique(bin_of[held], return_inverse=True)
    p, y = prior[held] / prior[held].sum(), labels[held]
    if y.size == 1 or epsilon > _HIGHEST:
        return alpha
    record, middle, unit, power = LOSSES[loss], 0.0, 1.0, 1
    if record.slopes is not None or record.degree == 2:
        # Relative to a label, in units of a power of two near the spread, so that integers stay
        # exact. Other losses are not the same at all places, or in all units.
        middle, power = y[p.argmax()], record.degree or 1
        unit = 2.0 ** np.ceil(np.log2(np.abs(y - middle).max()))
    values = (solution.values[kept] - middle) / unit
    search = _DualSearch((y - middle) / unit, p, epsilon, record, values, bins)
    alpha[held] = search.run() * unit**power
    if record.divergence is not None:  # what no output can avoid
        alpha[held] += p * record.of(y, y)
    return alpha


def piece_minima(
    loss: LossRecord, labels: Floats, prior: Floats, epsilon: float, alpha: Floats
) -> tuple[Floats, Floats]:
    """The minimum of F·e^-ε on every piece, and the output where it is taken.

    Args:
        loss: squared, or one with slopes.
        labels: [k] increasing. prior: [k] positive. epsilon: > 0. alpha: [k] multipliers.

    Returns:
        Two arrays [pieces], outputs not decreasing.
    """
    low = float(np.exp(-epsilon))
    if loss.slopes is None:
        found = price(labels, prior, low, alpha, np.zeros_like(alpha))
        return found.minima, found.places
    under, over = loss.slopes
    radius = np.maximum(alpha, 0.0) / prior
    places = np.concatenate([labels, labels - radius / under, labels + radius / over])
    # With b = e^-ε, F·b = Σ b·h + (1 − b)·Σ min(h, 0). Here min(h, 0) is zero up to the lower root,
    # turns at the label and is zero again from the upper root on. Without roots the bends cancel.
    p = prior.astype(np.longdouble)
    turn = (1.0 - low) * p
    bends = np.concatenate([(under + over) * p, -under * turn, -over * turn])
    order = np.argsort(places, kind="stable")
    places, bends = places[order], bends[order]
    slopes = -low * under * p.sum() + np.cumsum(bends)
    # The first place is at most the lowest label.
    first = low * (under * (p @ (labels.astype(np.longdouble) - places[0])) - alpha.sum())
    rises = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(slopes[:-1] * np.diff(places))])
    return (first + rises).astype(np.float64), places


def local_minima(minima: Floats, places: Floats, below: float) -> Floats:
    """Outputs where F has a local minimum under ``below``, given the minima of its pieces."""
    return np.unique(places[local_places(minima, below)])


def _places(y: Floats) -> Floats:
    """The labels [k] and points between them, where F is computed if it has no closed form."""
    parts = min(max(_PLACES // y.size, 2), _PARTS)
    inner = y[:-1, None] + np.diff(y)[:, None] * (np.arange(parts) / parts)
    return np.append(inner.ravel(), y[-1])


class _DualSearch:
    """The best multipliers so far, for labels of positive prior."""

    def __init__(
        self, y: Floats, p: Floats, epsilon: float, loss: LossRecord, values: Floats, bins: Ints
    ) -> None:
        self._y, self._p, self._epsilon, self._loss = y, p, epsilon, loss
        self._grid: tuple[Floats, Floats] | None = None
        if loss.slopes is None and loss.degree != 2:
            places = self._finite(_places(y))
            self._grid = places, p * loss.apart(places[:, None], y)
        self._values, self._bins = values, bins
        self._e = float(np.expm1(epsilon))
        own = p * loss.apart(values[bins], y)
        every = np.array([p @ loss.apart(v, y) for v in values])
        self._own, d = own, values.size
        costs = every + self._e * np.bincount(bins, own, d)
        self._lambda = float(costs.sum() / (d + self._e))
        self._costs = costs
        self._best, self._bound = np.zeros_like(y), 0.0  # F is never negative at α = 0

    def _finite(self, outputs: Floats) -> Floats:
        """Those at which every loss is finite."""
        return outputs[np.isfinite(self._loss.apart(outputs[:, None], self._y)).all(axis=1)]

    def run(self) -> Floats:
        """Multipliers [k] with F ≥ 0 up to rounding."""
        if self._values.size == 1 or self._e == 0.0:
            self._try(self._own)  # the box is a point
            return self._best
        if self._tight():
            return self._best
        self._low, self._high, self._totals = self._box()
        for alpha in self._closed_forms():
            if self._try(alpha) or self._project(alpha):
                return self._best
        if self._y.size <= _MOST_LABELS:
            self._refine(alpha)
        elif self._y.size <= _COARSE_LABELS and self._loss.degree is None:
            alpha = self._coarse()
            if not self._try(alpha):
                self._project(alpha)
        return self._best

    def _coarse(self) -> Floats:
        """Multipliers [k] between those of a problem with fewer labels.

        Neighbouring labels of a bin are one label there, at their mean.
        """
        parts = -(-self._y.size // (_MOST_LABELS // 2))
        new = np.diff(self._bins, prepend=-1) > 0
        start = np.flatnonzero(new)[self._bins]
        new |= (np.arange(self._y.size) - start) % parts == 0
        first = np.flatnonzero(new)
        p: Floats = np.add.reduceat(self._p, first)
        y: Floats = np.add.reduceat(self._p * self._y, first) / p
        fewer = _DualSearch(y, p, self._epsilon, self._loss, self._values, self._bins[new])
        height = fewer.run() / p
        return np.clip(self._p * np.interp(self._y, y, height), self._low, self._high)

    def _tight(self, gap: float = _TIGHT) -> bool:
        return self._bound >= self._lambda * (1.0 - gap)

    def _try(self, alpha: Floats) -> bool:
        """Lower α until F ≥ 0, keep it if it is the best; whether the best is tight."""
        minima, _ = self._minima(alpha)
        # Taking δ from every α adds δ·(k + E) at least to a negative F.
        short = max(0.0, -float(minima.min())) * np.exp(self._epsilon)
        self._keep(alpha - short / (alpha.size + self._e))
        if not self._tight(_CLOSE):
            self._keep(self._shrunk(alpha))
        return self._tight()

    def _keep(self, alpha: Floats) -> None:
        bound = float(alpha.sum())
        if bound > self._bound:
            self._best, self._bound = alpha, bound

    def _shrunk(self, alpha: Floats) -> Floats:
        """Smaller multipliers with F ≥ 0, by Newton's steps; 0 if that takes too many.

        F·e^-ε falls by b·Σα + (1 − b)·Σα over the negative h, times the share by which α grows.
        """
        b = float(np.exp(-self._epsilon))
        for _ in range(_SHRINKS):
            minima, places = self._minima(alpha)
            at = local_places(minima, -_TIGHT * b * self._lambda)
            if at.size == 0:
                return alpha
            at = at[np.argsort(minima[at], kind="stable")[:_MINIMA]]
            negative = self._p * self._loss.apart(places[at, None], self._y) < alpha
            price = b * alpha.sum() + (1.0 - b) * (negative * alpha).sum(axis=1)
            share = np.divide(-minima[at], price, out=np.ones(at.size), where=price > 0.0)
            alpha = alpha * (1.0 - min(float(share.max()), 1.0))
        return np.zeros_like(alpha)

    def _box(self) -> tuple[Floats, Floats, Floats]:
        """Ranges [k] of the multipliers and their sums [d] over bins, by complementary slackness.

        Only the outputs next to a bin's own can bound its multipliers from above.
        """
        last = self._values.size - 1
        left = self._loss.apart(self._values[np.maximum(self._bins - 1, 0)], self._y)
        right = self._loss.apart(self._values[np.minimum(self._bins + 1, last)], self._y)
        left[self._bins == 0] = np.inf
        right[self._bins == last] = np.inf
        high = np.maximum(self._p * np.minimum(left, right), self._own)
        return self._own, high, (self._costs - self._lambda) / self._e

    def _closed_forms(self) -> list[Floats]:
        """Points of the box with the right sums, between its corners by loss or by radius."""
        d = self._values.size
        room = self._totals - np.bincount(self._bins, self._low, d)
        wide = np.bincount(self._bins, self._high - self._low, d)
        theta = np.divide(room, wide, out=np.zeros(d), where=wide > 0)
        theta = np.clip(theta, 0.0, 1.0)[self._bins]
        points = [self._low + theta * (self._high - self._low)]
        if self._loss.degree == 2:
            points.append(even_roots(self._low, self._high, self._bins, room))
        return points

    def _refine(self, alpha: Floats) -> None:
        """Cutting planes from ``alpha`` on: F where it was negative, for the labels negative there.

        Among all multipliers in the box, a linear program finds those with the largest share of the
        possible F at the outputs of the cuts. An interior-point method finds a point far from the
        faces of the optimal set, which is also good between the outputs.
        """
        y, p = self._y, self._p
        member = (np.arange(self._values.size)[:, None] == self._bins).astype(np.float64)
        rows, most, scale = np.zeros((0, y.size)), np.zeros(0), np.zeros(0)
        outputs = self._finite(np.union1d(y, 0.5 * (y[:-1] + y[1:])))
        for _ in range(_ROUNDS):
            cost = p * self._loss.apart(outputs[:, None], y)
            negative = (cost < alpha).astype(np.float64)
            # F ≥ t·scale·E as a bound on Σ α over the negative ones, where Σ α is λ.
            free = cost.sum(axis=1)
            rows = np.concatenate([rows, negative])
            most = np.append(most, (free - self._lambda) / self._e + (negative * cost).sum(axis=1))
            # From the labels of bin j alone, F is at most what v costs bin j above v_j.
            above = (free[:, None] - self._costs) / self._e + cost @ member.T
            scale = np.append(scale, np.maximum(above.min(axis=1), 0.0))
            alpha = self._largest_share(member, np.column_stack([rows, scale]), most)
            if self._try(alpha) or self._project(alpha):
                return
            outputs = local_minima(*self._minima(alpha), 0.0)
            if outputs.size == 0:
                return

    def _largest_share(self, member: Floats, rows: Floats, most: Floats) -> Floats:
        """[k] α in the box with rows·(α, t) ≤ most and the largest t ≤ 1."""
        from labeldp_compile.solve.optimal_unbiased.cone_program import (  # noqa: PLC0415  # rare
            largest_share,
        )

        d, k = member.shape
        unit = self._lambda / k
        rows[:, -1] /= unit
        none = sparse.csc_matrix((k, 1))
        each = sparse.hstack([sparse.identity(k), none])
        last = sparse.csc_matrix(([1.0], ([0], [k])), (1, k + 1))
        sums = sparse.hstack([sparse.csc_matrix(member), none[:d]])
        matrix = sparse.vstack([sums, sparse.csc_matrix(rows), each, -each, last], "csc")
        right = np.concatenate([self._totals, most, self._high, -self._low, [unit]]) / unit
        return largest_share(matrix, right, d)[:k] * unit

    def _minima(self, alpha: Floats) -> tuple[Floats, Floats]:
        if self._grid is None:
            return piece_minima(self._loss, self._y, self._p, self._epsilon, alpha)
        places, costs = self._grid
        f = self._scaled(costs, alpha)
        # The lowest places once more, with finer steps around them.
        around = np.array([places[0], *places, places[-1]])
        least = local_places(f, np.inf)
        least = least[np.argsort(f[least], kind="stable")[:_MINIMA]]
        parts = np.linspace(0.0, 1.0, _FINER)
        near = around[least, None] * (1.0 - parts) + around[least + 2, None] * parts
        more = np.setdiff1d(near, places)
        value = self._scaled(self._p * self._loss.apart(more[:, None], self._y), alpha)
        order = np.argsort(np.concatenate([places, more]), kind="stable")
        return np.concatenate([f, value])[order], np.concatenate([places, more])[order]

    def _scaled(self, costs: Floats, alpha: Floats) -> Floats:
        """F·e^-ε [n] from the costs [n, k] of n outputs."""
        h = costs - alpha
        f = h.sum(axis=1) + self._e * np.minimum(h, 0.0).sum(axis=1)
        return np.asarray(f * np.exp(-self._epsilon))

    def _project(self, alpha: Floats) -> bool:
        """Try nearby points where the minima of F are 0; whether the best is close to tight.

        α moves until F = 0 at its negative minima, given the labels with negative h there. It moves
        as little as possible, relative to how far each multiplier may go. This is the right move if
        no optimal α leaves F positive, because equally good bins exist.
        """
        weight = np.maximum(np.minimum(alpha - self._low, self._high - alpha), 0.0)
        rows = (np.arange(self._values.size)[:, None] == self._bins).astype(np.float64)
        below = -_TIGHT * self._lambda * np.exp(-self._epsilon)
        for _ in range(_PROJECTIONS):
            if self._tight(_CLOSE) or rows.size > _ROW_ENTRIES:
                break
            outputs = local_minima(*self._minima(alpha), below)[:_MINIMA]
            h = self._p * self._loss.apart(outputs[:, None], self._y) - alpha
            f = h.sum(axis=1) + self._e * np.minimum(h, 0.0).sum(axis=1)
            lacking = np.concatenate([np.zeros(rows.shape[0]), f / self._e])
            rows = np.concatenate([rows, (h < 0).astype(np.float64)])
            move = np.linalg.lstsq(rows * weight, lacking, rcond=1e-10)[0]
            alpha = alpha + weight * move
            self._try(alpha)
        return self._tight(_CLOSE)
