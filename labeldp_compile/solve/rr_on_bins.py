"""RR-on-Bins: the best of all ε-DP label randomizers, for a prior and a loss.

"Regression with Label Differential Privacy" (Ghazi et al., ICLR 2023). Algorithm 1 randomizes the
bin of a label. By Theorem 5 the best bins are as good as any ε-DP mechanism. Algorithm 2 finds them
by dynamic programming over labels and number of bins. Here the number of bins is not a dimension:
the loss is a ratio, which Dinkelbach's iteration minimizes over least-weight subsequences.

With b = e^−ε, d bins of cost c₁ … c_d (see `bin_costs`) lose Σ cⱼ / (1 + (d − 1)·b).
"""

from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.bin_costs import BinCosts, bin_costs
from labeldp_compile.solve.least_weight_subsequence import Cuts, WeightedRuns
from labeldp_compile.solve.losses import BinLoss, Floats, Ints, loss_of

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


def solve_rr_on_bins(labels: Floats, prior: Floats, epsilon: float, loss: BinLoss) -> BinsSolution:
    """Find the bins and outputs of RR-on-Bins with the least noisy label loss.

    The result is exact up to rounding, which is far below 1e-9 of the loss for ε <= 30; larger ε
    are also safe. Among equally good bins it uses few. A label of prior 0 between two bins joins
    the one whose output has the lower loss for it.

    Args:
        labels: [k] strictly increasing, within ±1e150; not negative for the Poisson loss.
        prior: [k] finite, not negative, not all 0; normalized here.
        epsilon: privacy parameter ε >= 0 of the randomizer.
        loss: "squared" ½(v − y)², "absolute" |v − y| or "poisson" v − y·log v: at most O(k²) steps
            and O(k log k) memory.

    Returns:
        The best bins: Pr[vⱼ | y] is e^ε / (e^ε + d − 1) if y is in bin j, else 1 / (e^ε + d − 1).

    Raises:
        ValueError: labels beyond ±1e150, or negative ones with the Poisson loss.
    """
    labels, prior = np.asarray(labels, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if not (np.abs(labels) <= _LARGEST).all():
        raise ValueError(f"labels must be at most {_LARGEST:g} in absolute value")
    if loss == "poisson" and labels[0] < 0:
        raise ValueError("the Poisson loss needs labels that are not negative")
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


def _bins_of_all(labels: Floats, support: Ints, cuts: Ints, values: Floats, loss: BinLoss) -> Ints:
    """Bin of every label [k], not decreasing; `cuts` counts the labels in `support` only."""
    bin_of = np.searchsorted(cuts[1:], np.arange(support.size), side="right")
    every = np.arange(labels.size)
    above = np.minimum(np.searchsorted(support, every), support.size - 1)
    below = np.maximum(np.searchsorted(support, every, side="right") - 1, 0)
    upper, lower = bin_of[above], bin_of[below]
    at = np.flatnonzero(lower < upper)
    above_loss, below_loss = (loss_of(loss, values[b[at]], labels[at]) for b in (upper, lower))
    up = above_loss < below_loss
    bins = lower
    bins[at[up]] = upper[at[up]]
    # Except for rounding they already rise: labels that prefer the upper output are above others.
    return np.maximum.accumulate(bins)
