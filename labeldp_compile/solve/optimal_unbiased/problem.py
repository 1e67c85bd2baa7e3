"""The problem of the optimal unbiased randomizer: its columns, its units, coarser problems.

The columns are intervals of neighbouring labels.

By Claims 12-14 of the unbiased-randomizer paper, every output of an optimum has the high
probability for a run of neighbouring labels and the low one for all others, and the runs only move
forward. So a column is a pair (first, last) of label indices, both inclusive.

The window form goes from outputs and weights alone to a mechanism with exact means. The line is the
extra probability (e^ε − 1)·c_i of the outputs, end to end in the order of their values. A label
gets a window of length X = 1 − Σc of this line, in addition to the base weights c. Its mean grows
with the start of the window, piecewise linearly, so the start with the wanted mean can be computed
exactly. Among all rows with this mean and entries between c_i and e^ε·c_i, the window has the least
E(v − y)², because the set where a parabola is below a chord is an interval. So no other assignment
over the same outputs is better than windows.
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


_FEW = 64  # segments
_UNUSED = 1e-13  # weight below which a value has no meaning


@dataclass(frozen=True, eq=False)
class ExtraLine:
    """The line of extra probability.

    Attributes:
        values: [m] output values, nondecreasing.
        weights: [m] high entries g = e^ε·c of the outputs; the base probabilities are e^-ε·g.
        ends: [m + 1] ends of the segments on the line, from 0.
        area: [m + 1] integral of the value from 0 to each end.
        base: mean contributed by the base weights, the same for every label.
        window: X, length of every window.
    """

    values: Floats
    weights: Floats
    ends: Floats
    area: Floats
    base: float
    window: float

    def means(self, starts: Floats) -> Floats:
        """Return the mean output of a window at each start."""
        stops = np.minimum(starts + self.window, self.ends[-1])
        inside = np.interp(stops, self.ends, self.area) - np.interp(starts, self.ends, self.area)
        return np.asarray(self.base + inside, np.float64)


def extra_line(values: Floats, weights: Floats, low: float) -> ExtraLine:
    """Lay out the extra probability of outputs with high entries ``weights`` (g = e^ε·c).

    Args:
        values: [m] in any order; sorted here. weights: [m] >= 0. low: e^-ε.
    """
    order = np.argsort(values, kind="stable")
    v, g = values[order], weights[order]
    lengths = (1.0 - low) * g
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    area = np.concatenate([[0.0], np.cumsum(lengths * v)])
    base = low * float(g.sum())
    return ExtraLine(v, g, ends, area, low * float((g * v).sum()), min(1.0 - base, float(ends[-1])))


def place_windows(line: ExtraLine, targets: Floats) -> Floats:
    """Return the starts at which windows have the wanted means, clipped to the line.

    Args:
        line: the extra line. targets: [k] wanted means.
    """
    room = line.ends[-1] - line.window
    knots = np.concatenate([line.ends, line.ends - line.window])
    knots = np.unique(np.clip(knots, 0.0, room))
    # The means at knots are nondecreasing, but rounding may lower them by an ulp.
    means = np.maximum.accumulate(line.means(knots))
    return np.asarray(np.interp(targets, means, knots), np.float64)


def widen(line: ExtraLine, lowest: float, highest: float, low: float) -> ExtraLine:
    """Move the outer values outward until windows reach the lowest and the highest wanted mean.

    An optimum just reaches both, so rounding alone leaves it slightly short.
    """
    room = line.ends[-1] - line.window
    short = np.maximum(
        [line.means(np.zeros(1))[0] - lowest, highest - line.means(np.array([room]))[0]], 0.0
    )
    if not short.any() or line.values.size < 2:
        return line
    lengths = np.diff(line.ends)
    base = low * line.weights[[0, -1]]
    own = np.minimum(lengths[[0, -1]], line.window)
    # The part of an outer segment that the window at the other end covers.
    other = np.maximum(lengths[[0, -1]] - room, 0.0)
    effect = np.array(
        [[base[0] + own[0], -base[1] - other[1]], [-base[0] - other[0], base[1] + own[1]]]
    )
    determinant = effect[0, 0] * effect[1, 1] - effect[0, 1] * effect[1, 0]
    if not determinant > 0:
        return line
    move = np.array(
        [
            effect[1, 1] * short[0] - effect[0, 1] * short[1],
            effect[0, 0] * short[1] - effect[1, 0] * short[0],
        ]
    ) * ((1.0 + 1e-12) / determinant)
    values = line.values.copy()
    values[0] -= move[0]
    values[-1] += move[1]
    return extra_line(values, line.weights, low)


def placed_loss(
    line: ExtraLine, starts: Floats, labels: Floats, prior: Floats, low: float
) -> float:
    """Return ½E(v̂ − y)² of windows at given starts, summed from nonnegative terms."""
    v = line.values
    centre = 0.5 * float(labels[0] + labels[-1])
    base = low * line.weights
    moments = [float(base @ (v - centre) ** n) for n in range(3)]
    z = labels - centre
    losses = moments[2] - 2.0 * z * moments[1] + z * z * moments[0]
    losses[prior > 0] += _inside(line, starts[prior > 0], labels[prior > 0], centre)
    return 0.5 * float(prior @ losses)


def _inside(line: ExtraLine, starts: Floats, labels: Floats, centre: float) -> Floats:
    """[n] ∫ (v − y)² over windows.

    Windows of a few segments are integrated segment by segment: at large ε they are close to their
    label, and the second moment about it would be lost in a difference of prefix sums.
    """
    v, ends = line.values, line.ends
    stops = np.minimum(starts + line.window, ends[-1])
    left = np.clip(np.searchsorted(ends, starts, side="right") - 1, 0, v.size - 1)
    right = np.maximum(left, np.clip(np.searchsorted(ends, stops) - 1, 0, v.size - 1))
    total = np.zeros(labels.size)
    short = right - left < _FEW
    for step in range(int((right - left)[short].max(initial=-1)) + 1):
        at = np.flatnonzero(short & (left + step <= right))
        i = left[at] + step
        length = np.minimum(ends[i + 1], stops[at]) - np.maximum(ends[i], starts[at])
        total[at] += length * (v[i] - labels[at]) ** 2
    long = np.flatnonzero(~short)
    if long.size:
        i, j, z = left[long], right[long], labels[long].astype(np.longdouble) - centre
        u, lengths = v.astype(np.longdouble) - centre, np.diff(ends)
        cut = ends[i + 1] - starts[long], stops[long] - ends[j]
        inner = np.zeros(long.size, np.longdouble)
        for n, factor in enumerate((z * z, -2.0 * z, np.ones_like(z))):
            sums = np.concatenate([[0.0], np.cumsum(lengths * u**n)])
            moment = sums[j] - sums[i + 1] + cut[0] * u[i] ** n + cut[1] * u[j] ** n
            inner += factor * moment
        total[long] = np.maximum(inner, 0.0).astype(np.float64)
    return total


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a mechanism: the interval, high entry and value of each, in the order of values.

    Attributes:
        intervals: [m] labels with the high entry.
        weights: [m] high entries g = e^ε·c.
        values: [m] nondecreasing.
    """

    intervals: Intervals
    weights: Floats
    values: Floats

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.intervals)

    def take(self, keep: NDArray[np.bool_]) -> Columns:
        """Return the columns picked by a mask."""
        return Columns(self.intervals.take(keep), self.weights[keep], self.values[keep])

    def among(self, intervals: Intervals, k: int) -> Columns:
        """Return columns for all these intervals, which include ours; the others have no weight."""
        at = np.searchsorted(intervals.keys(k), self.intervals.keys(k))
        weights, values = np.zeros(len(intervals)), np.zeros(len(intervals))
        weights[at], values[at] = self.weights, self.values
        return Columns(intervals, weights, values)

    def used(self) -> Columns:
        """Return the columns whose weight is not due to rounding."""
        return self.take(self.weights > _UNUSED)


@dataclass(frozen=True, eq=False)
class Iterate:
    """A mechanism and multipliers, both close to the optimum.

    Attributes:
        columns: the mechanism. alpha, beta: [k] the multipliers.
        how: how the solver ended. value: its objective, if it has one.
    """

    columns: Columns
    alpha: Floats
    beta: Floats
    how: str = ""
    value: float = np.nan


def column_means(columns: Columns, k: int, low: float) -> Floats:
    """Return E[output | y] of all labels. [k]"""
    moment = columns.weights * columns.values
    steps = np.zeros(k + 1)
    np.add.at(steps, columns.intervals.first, moment)
    np.add.at(steps, columns.intervals.last + 1, -moment)
    return low * float(moment.sum()) + (1.0 - low) * np.cumsum(steps[:-1])


def as_windows(problem: Program, columns: Columns) -> tuple[Columns, Floats]:
    """Return windows that replace a mechanism, and their exact means [k].

    The means are as close to those of the mechanism as the budget allows.
    """
    line = extra_line(columns.values, columns.weights, problem.low)
    means = problem.allowed(column_means(columns, problem.k, problem.low))
    return window_columns(line, place_windows(line, means), problem.low), means


def window_columns(line: ExtraLine, starts: Floats, low: float) -> Columns:
    """Cut the line where windows begin and end, and average the values between cuts.

    The result is the same mechanism with pure columns (two levels only), moved to the mean value of
    each piece. Means do not change, and by Jensen the loss can only fall (Claim 12). There are at
    most 2k − 1 columns, so this replaces the crossover to a vertex. Parts that no window covers are
    left out.

    Args:
        line: the extra line. starts: [k] nondecreasing. low: e^-ε.
    """
    stops = np.minimum(starts + line.window, line.ends[-1])
    cuts = np.unique(np.concatenate([starts, stops]))
    points = np.union1d(cuts, line.ends)
    length = np.diff(points)
    middle = points[:-1] + 0.5 * length
    segment = np.clip(np.searchsorted(line.ends, middle, side="right") - 1, 0, line.values.size - 1)
    gap = np.searchsorted(cuts, middle, side="right")
    total = np.bincount(gap, length, cuts.size + 1)[1:-1]
    moment = np.bincount(gap, length * line.values[segment], cuts.size + 1)[1:-1]
    first = np.searchsorted(stops, cuts[:-1], side="right")
    last = np.searchsorted(starts, cuts[:-1], side="right") - 1
    keep = (first <= last) & (total > 0)
    total, moment = total[keep], moment[keep]
    intervals = Intervals(first[keep].astype(np.int64), last[keep].astype(np.int64))
    return Columns(intervals, total / (1.0 - low), np.maximum.accumulate(moment / total))
