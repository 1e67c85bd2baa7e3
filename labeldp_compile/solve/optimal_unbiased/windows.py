"""The window form: from outputs and weights alone to a mechanism with exact means.

The line is the extra probability (e^ε − 1)·c_i of the outputs, end to end in the order of their
values. A label gets a window of length X = 1 − Σc of this line, in addition to the base weights c.
Its mean grows with the start of the window, piecewise linearly, so the start with the wanted mean
can be computed exactly. Among all rows with this mean and entries between c_i and e^ε·c_i, the
window has the least E(v − y)², because the set where a parabola is below a chord is an interval. So
no other assignment over the same outputs is better than windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.solve.optimal_unbiased.problem import Floats, Intervals, Program

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
