"""The problem of the optimal unbiased randomizer: its columns, its units, coarser problems.

The columns are intervals of neighbouring labels.

By Claims 12-14 of the unbiased-randomizer paper, every output of an optimum has the high
probability for a run of neighbouring labels and the low one for all others, and the runs only move
forward. So a column is a pair (first, last) of label indices, both inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """A set of intervals of label indices.

    Attributes:
        first: [m] int64, index of the first label inside.
        last: [m] int64, index of the last label inside, ``last >= first``.
    """

    first: Ints
    last: Ints

    def __len__(self) -> int:
        """Return the number of intervals."""
        return int(self.first.size)

    def keys(self, k: int) -> Ints:
        """Return a number for each interval of k labels, which sorts them."""
        return self.first * np.int64(k) + self.last

    def take(self, keep: NDArray[np.bool_] | Ints) -> Intervals:
        """Return the intervals picked by a mask or by positions."""
        return Intervals(self.first[keep], self.last[keep])


def unique_intervals(first: Ints, last: Ints, k: int) -> Intervals:
    """Drop pairs that are no interval of ``k`` labels, and duplicates; sort by (first, last)."""
    valid = (first >= 0) & (last < k) & (first <= last)
    keys = np.unique(first[valid] * np.int64(k) + last[valid])
    return Intervals(keys // k, keys % k)


def join(k: int, *parts: Intervals) -> Intervals:
    """Return the intervals of ``k`` labels that are in any of the parts."""
    return unique_intervals(
        np.concatenate([s.first for s in parts]), np.concatenate([s.last for s in parts]), k
    )


def no_intervals() -> Intervals:
    """Return no intervals."""
    nothing = np.zeros(0, np.int64)
    return Intervals(nothing, nothing)


def all_intervals(k: int) -> Intervals:
    """Return all k(k+1)/2 intervals of ``k`` labels."""
    first, last = np.triu_indices(k)
    return Intervals(first.astype(np.int64), last.astype(np.int64))


def prefixes_and_suffixes(k: int) -> Intervals:
    """Return every interval that touches an end.

    They alone make the problem feasible at every ε: mixtures of the smallest and the largest value
    reach every mean between them (Proposition 7).
    """
    index = np.arange(k, dtype=np.int64)
    zero, end = np.zeros(k, np.int64), np.full(k, k - 1, np.int64)
    return unique_intervals(np.concatenate([zero, index]), np.concatenate([index, end]), k)


def singletons(k: int) -> Intervals:
    """Return the one-label intervals, feasible at every ε: debiased randomized response."""
    index = np.arange(k, dtype=np.int64)
    return Intervals(index, index.copy())


def neighbourhood(intervals: Intervals, k: int, radius: int, ends: int = 2) -> Intervals:
    """Return all intervals whose ends are at most ``radius`` from those of a given one.

    With ``ends`` of 1 at least one of the two ends is that of the given one.
    """
    step = np.arange(-radius, radius + 1, dtype=np.int64)
    first, last = (move.ravel() for move in np.meshgrid(step, step))
    near = np.count_nonzero([first, last], axis=0) <= ends
    return unique_intervals(
        (intervals.first[:, None] + first[near]).ravel(),
        (intervals.last[:, None] + last[near]).ravel(),
        k,
    )


@dataclass(frozen=True, eq=False)
class Runs:
    """Columns that are not one interval, each as its runs of neighbouring labels.

    No optimum uses them. But if the multipliers are not unique, their conditions are needed to find
    multipliers that satisfy all conditions.

    Attributes:
        owner: [r] which column a run belongs to, 0 to count − 1.
        first, last: [r] the runs.
        count: number of columns.
    """

    owner: Ints
    first: Ints
    last: Ints
    count: int


def no_runs() -> Runs:
    """Return no columns."""
    nothing = np.zeros(0, np.int64)
    return Runs(nothing, nothing, nothing, 0)


def both_runs(one: Runs, other: Runs) -> Runs:
    """Return the columns of both."""
    return Runs(
        np.concatenate([one.owner, other.owner + one.count]),
        np.concatenate([one.first, other.first]),
        np.concatenate([one.last, other.last]),
        one.count + other.count,
    )


# The problem in solver units, reduced to the labels that matter.


@dataclass(frozen=True)
class BiasBudget:
    """How far means may be from their labels; by default not at all.

    Attributes:
        most: τ, the largest |E[output | y] − y|, in units of the labels; None for no limit.
        penalty: λ of a penalty λ·Σ p_y·d_y² added to the loss; None for none. With 0 the bias is
            free, which is the RR-on-Bins problem.

    At most one of the two is given. Without both, means must equal the labels.
    """

    most: float | None = None
    penalty: float | None = None

    @property
    def unbiased(self) -> bool:
        """Whether the means must equal the labels."""
        return self.penalty is None and not self.most


@dataclass(frozen=True, eq=False)
class Program:
    """Labels and prior in solver units.

    Attributes:
        labels: [k] strictly increasing, k >= 2.
        prior: [k] >= 0, sums to about 1.
        low: e^-ε, the low entry of a column whose high entry is 1.
        bias: the budget, in the same units.
    """

    labels: Floats
    prior: Floats
    low: float
    bias: BiasBudget

    @property
    def k(self) -> int:
        """The number of labels."""
        return int(self.labels.size)

    def allowed(self, means: Floats) -> Floats:
        """Return the means nearest to the given ones that the budget allows, nondecreasing."""
        if self.bias.unbiased:
            return self.labels
        rising = np.maximum.accumulate(means)
        if self.bias.most is None:
            return rising
        return np.clip(rising, self.labels - self.bias.most, self.labels + self.bias.most)

    def penalty(self, means: Floats) -> float:
        """Return λ·Σ p·d²."""
        return (self.bias.penalty or 0.0) * float(self.prior @ (means - self.labels) ** 2)

    def scaled(self, unit: float) -> Program:
        """Return the problem with labels divided by ``unit``; λ is a pure number and stays."""
        most = None if self.bias.most is None else self.bias.most / unit
        return Program(
            self.labels / unit, self.prior, self.low, BiasBudget(most, self.bias.penalty)
        )


def deciding_labels(problem: Program, negligible: float) -> Ints:
    """Return the indices of the labels that must be kept.

    A label that never occurs constrains nothing unless it is an end: windows reach every mean
    between those of the two ends, and its own row has no cost. So removing it changes neither the
    optimum nor the bound (its multipliers are zero). Very rare labels are treated in the same way;
    the certified gap shows the loss. If bias is only penalized, ends that never occur constrain
    nothing, too.

    Args:
        problem: the whole problem. negligible: prior mass that may be left out in total.
    """
    order = np.argsort(problem.prior, kind="stable")
    keep = np.ones(problem.k, np.bool_)
    keep[order[np.cumsum(problem.prior[order]) <= negligible]] = False
    if problem.bias.penalty is None or keep.sum() < 2:
        keep[[0, -1]] = True
    return np.flatnonzero(keep).astype(np.int64)


def merge_neighbours(problem: Program, n: int) -> Program:
    """Return the problem of ``n`` runs of neighbouring labels: mean label and total prior.

    The two ends stay separate: they decide how far outputs must reach, and may be far from the
    rest.
    """
    if n == problem.k:
        return problem
    inner = np.round(np.linspace(1, problem.k - 1, n - 1)).astype(np.int64)
    edges = np.concatenate([[0], inner, [problem.k]])
    labels = np.add.reduceat(problem.labels, edges[:-1]) / np.diff(edges)
    prior = np.add.reduceat(problem.prior, edges[:-1])
    return Program(labels, prior, problem.low, problem.bias)


def reference_losses(problem: Program) -> tuple[float, float]:
    """Return the losses of two simple unbiased mechanisms, which bound the optimum from above.

    The first mixes two outputs beyond the two ends; it is good at small ε. The second is debiased
    randomized response on all labels (Definition 23), the limit of optima at large ε.
    """
    y, p, low = problem.labels, problem.prior, problem.low
    k = y.size
    centre = 0.5 * (y[0] + y[-1])
    beyond = (y[-1] - y[0]) * low / (1.0 - low)  # of the two outputs, beyond the ends
    ends = 0.5 * float(p @ ((y[-1] - y + beyond) * (y - y[0] + beyond)))
    z = y - centre
    move = (k * z - z.sum()) * low / (1.0 - low)  # output − label
    out = z + move
    low_part = float(out @ out) - 2.0 * z * out.sum() + k * z * z - move**2
    response = 0.5 * float(p @ (low * low_part + move**2)) / (1.0 + low * (k - 1))
    return ends, response


# Coarser problems of merged neighbours, and how their solutions predict finer ones.
#
# A coarse label is at the prior's mean of its labels. Then a coarse solution is a solution for the
# labels up to second order in its width, on both sides: windows on its line can be placed for every
# label, and its multipliers move along with the label. Every label gets its shifted share
# h_y(v) = p_y/p_g·h_g(v − (y − y_g)), which keeps the sign. So
# α_y = p_y/p_g·(α_g − (y − y_g)·β_g) and β_y = p_y/p_g·β_g.


COARSEST = 250
"""Labels up to which cone programs alone are as fast as levels."""
_COSTLY = 32.0  # times the mean spread of a pair; above that, its two labels stay separate


@dataclass(frozen=True, eq=False)
class Level:
    """A coarser problem.

    Attributes:
        problem: the coarse labels.
        parent: [labels of the next finer level] the coarse label of each; nondecreasing.
    """

    problem: Program
    parent: Ints


def coarsen(problem: Program) -> Level:
    """Merge the labels in pairs, except for the two ends and for pairs that matter too much.

    The ends decide how far outputs must reach. A pair matters if distinguishing its labels matters:
    by the part of the prior's variance that lies between them.
    """
    y, p = problem.labels, problem.prior
    left = np.arange(1, problem.k - 2, 2)
    mass = p[left] + p[left + 1]
    between = np.divide(p[left] * p[left + 1], mass, out=np.zeros_like(mass), where=mass > 0)
    spread = between * (y[left + 1] - y[left]) ** 2
    opens = np.ones(problem.k, np.bool_)
    # Not all pairs can be this far above their mean, so every level is coarser than the last one.
    opens[left[~(spread > _COSTLY * spread.mean())] + 1] = False
    parent = np.cumsum(opens) - 1
    prior = np.bincount(parent, p).astype(np.float64)
    at = np.bincount(parent, p * y)
    plain = np.bincount(parent, y) / np.bincount(parent)
    labels = np.divide(at, prior, out=plain, where=prior > 0)
    # A single label is its own mean, without rounding.
    first = np.flatnonzero(opens)
    alone = np.diff(np.append(first, problem.k)) == 1
    labels[alone] = y[first[alone]]
    return Level(Program(labels, prior, problem.low, problem.bias), parent.astype(np.int64))


def predicted_means(coarse: Program, means: Floats, labels: Floats) -> Floats:
    """Return the means of other labels between those of neighbours: the bias is interpolated."""
    return labels + np.interp(labels, coarse.labels, means - coarse.labels)


def moved_along(
    coarse: Program, fine: Program, parent: Ints, alpha: Floats, beta: Floats
) -> tuple[Floats, Floats]:
    """Multipliers of the labels from those of coarse ones.

    Args:
        coarse, fine: the two problems. parent: [fine] the coarse label of each.
        alpha, beta: [coarse] multipliers.
    """
    whole = coarse.prior[parent]
    share = np.divide(fine.prior, whole, out=np.ones(fine.k), where=whole > 0)
    distance = fine.labels - coarse.labels[parent]
    slope = share * beta[parent]
    return share * alpha[parent] - distance * slope, slope
