"""The last level: cone programs, Newton's method and pricing, until the gap is certified."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labeldp_compile.observer import Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import (
    Guards,
    polish,
    solve_cones,
    tightened_by_programs,
)
from labeldp_compile.solve.optimal_unbiased.dual import (
    Bound,
    complete,
    dual_value,
    lowered,
    priced_out,
    prove,
    tightened,
)
from labeldp_compile.solve.optimal_unbiased.problem import (
    Columns,
    ExtraLine,
    Floats,
    Intervals,
    Iterate,
    Program,
    Runs,
    as_windows,
    both_runs,
    column_means,
    extra_line,
    join,
    neighbourhood,
    no_intervals,
    no_runs,
    place_windows,
    placed_loss,
    reference_losses,
    singletons,
    widen,
    window_columns,
)

_ROUNDS = 6  # cone programs at most
_MORE_ROUNDS = 12  # if they are cheap: multipliers that are not unique need them
_CHEAP = 500  # labels
_PRICINGS = 15  # Newton rounds after each cone program
_IDLE = 3  # Newton rounds without progress, after which to give up
_TOLERANCE, _BEST_TOLERANCE = 1e-8, 1e-11  # of the cone program: first round, last round
# Distance of guards from a window, in window lengths and in outputs, in turn.
_MARGINS = (0.5, 2), (0.1, 1), (0.0, 2), (0.0, 1), (0.2, 2)
_PROMISING = 0.1  # gap of randomized response from which Newton's method may well converge
_GOOD = 1e-6  # gap that is not worth cone programs of many labels
_LOOSE = 1e-4  # gap from which linear programs are tried, too
_TIGHTENED = 5_000  # labels, at most: cuts have an entry for each
_WIDE = 2  # radius of their neighbourhood
_SLIVER = 1e-3  # weight, relative to label spacing, below which a column is due to rounding


@dataclass(frozen=True, eq=False)
class Found:
    """The best mechanism and the best bound found, in the problem's units.

    Attributes:
        line: the mechanism's outputs as an extra line. means: [k] its wanted means.
        loss: its objective.
        bound: the best dual bound.
    """

    line: ExtraLine
    means: Floats
    loss: float
    bound: Bound

    def better(self, other: Found) -> Found:
        """The better mechanism and the better bound of the two."""
        best = other if other.loss <= self.loss else self
        bound = max(other.bound, self.bound, key=lambda b: b.value)
        return replace(best, bound=bound)


class Search:
    """Keeps the best mechanism and the best bound while columns are added.

    Attributes:
        line, means, loss: the best mechanism as an extra line with wanted means, its objective.
        bound: the best dual bound.
    """

    def __init__(self, problem: Program, tolerance: float, observer: Observer) -> None:
        """Start without a mechanism.

        Args:
            problem: in units in which the loss is about 1/2. tolerance: relative gap to reach.
            observer: gets a line per step.
        """
        self.problem, self.tolerance, self.observer = problem, tolerance, observer
        nothing = np.zeros(problem.k)
        self.bound = prove(problem, nothing, nothing)
        self.loss, self.line = np.inf, extra_line(np.zeros(1), np.zeros(1), problem.low)
        self.means = problem.labels
        self._cones: list[Iterate] = []
        self._nearly = self.bound, self.bound  # multipliers, and what they prove once lowered

    @property
    def gap(self) -> float:
        """The certified relative gap so far."""
        return (self.loss - self.bound.value) / self.loss if np.isfinite(self.loss) else np.inf

    def found(self, unit: float) -> Found:
        """The results, in units of which the search's unit is ``unit``."""
        line, bound = self.line, self.bound
        return Found(
            extra_line(line.values * unit, line.weights, self.problem.low),
            self.means * unit,
            self.loss * unit**2,
            Bound(bound.value * unit**2, bound.alpha * unit**2, bound.beta * unit),
        )

    def try_response(self) -> None:
        """Try debiased randomized response, and Newton's method from there.

        At large ε it is almost optimal, and interior points have most difficulties.
        """
        problem = self.problem
        ends, response = reference_losses(problem)
        if response > ends * (1.0 + 1e-9) or not problem.bias.unbiased:
            return
        start = response_point(problem)
        self.offer(start, problem.labels)
        polished = polish(problem, start, problem.labels)
        if polished is None:
            return
        self.offer(polished, problem.labels)
        if self.tolerance < self.gap < _PROMISING:
            self._newton_rounds(polished)

    def finish(self, point: Iterate) -> None:
        """Continue from an almost optimal point: Newton rounds, and cone programs if needed."""
        found = self._newton_rounds(self._thick(point, _SLIVER))
        if self.gap > max(self.tolerance, _GOOD):
            near = join(self.problem.k, point.columns.intervals, found)
            rounds = _MORE_ROUNDS if self.problem.k <= _CHEAP else _ROUNDS
            self.run(neighbourhood(near, self.problem.k, _WIDE), rounds)

    def run(self, columns: Intervals, rounds: int = _ROUNDS) -> None:
        """Alternate cone programs and Newton rounds until the gap is certified.

        Args:
            columns: intervals to start with; they must contain a feasible mechanism.
            rounds: cone programs at most.
        """
        k, accuracy, sliver = self.problem.k, _TOLERANCE, _SLIVER
        runs, guards = no_runs(), None
        for turn in range(rounds):
            before = self.gap
            cones = solve_cones(self.problem, columns, accuracy, runs, guards)
            self.observer.step(f"level of {k} labels: {len(columns)} intervals, {cones.how}")
            start = self._start(cones, sliver)
            self._remember(cones)
            self._cones.append(cones)
            missing, uneven = self.missing(cones, True)
            found = self._newton_rounds(start)
            if self.gap <= self.tolerance:
                return
            missing = join(k, missing, found)
            if self.gap > 0.9 * before and self.gap < _GOOD:
                return
            columns = join(k, columns, missing, neighbourhood(missing, k, 1))
            accuracy, sliver = max(0.1 * accuracy, _BEST_TOLERANCE), 0.1 * sliver
            runs, guards = both_runs(runs, uneven), self._guards(*_MARGINS[turn % len(_MARGINS)])

    def _remember(self, cones: Iterate) -> None:
        """Keep the best multipliers for ``tighten``: used here, they would end searches earlier."""
        alpha = lowered(self.problem, cones.alpha, cones.beta)
        bound = prove(self.problem, alpha, cones.beta)
        if bound.value > self._nearly[1].value:
            self._nearly = Bound(0.0, cones.alpha, cones.beta), bound

    def tighten(self) -> None:
        """Improve the bound where multipliers are not unique; the mechanism stays."""
        if self.gap <= _GOOD:
            return
        near, bound = self._nearly
        if self.problem.k <= _TIGHTENED:
            bound = tightened(self.problem, near.alpha, near.beta, self.loss)
        self.bound = max(self.bound, bound, key=lambda b: b.value)
        if self.gap > _LOOSE and self._cones and self.problem.k <= _TIGHTENED:
            problem, line = self.problem, self.line
            errors = [abs(dual_value(problem, c.alpha, c.beta) - self.loss) for c in self._cones]
            columns = window_columns(line, place_windows(line, self.means), problem.low)
            best = self._cones[int(np.argmin(errors))]
            bound = tightened_by_programs(problem, best, columns, self.loss)
            self.bound = max(self.bound, bound, key=lambda b: b.value)

    def _start(self, cones: Iterate, sliver: float) -> Iterate:
        """Return the columns that the cone program seems to use."""
        columns, means = as_windows(self.problem, cones.columns.used())
        point = replace(cones, columns=columns)
        self.offer(point, means)
        return self._thick(point, sliver)

    def _thick(self, point: Iterate, sliver: float) -> Iterate:
        columns = point.columns
        keep = columns.weights > sliver * self._spacing(columns.intervals)
        return replace(point, columns=columns.take(keep))

    def _spacing(self, intervals: Intervals) -> Floats:
        """Return the smallest gap of labels, relative to their range, at the ends of intervals.

        Windows of close labels start close to each other, so this is the size of a column between
        their ends.
        """
        y = self.problem.labels
        gaps = np.concatenate([[np.inf], np.diff(y) / (y[-1] - y[0]), [np.inf]])
        near = np.minimum(gaps[:-1], gaps[1:])
        return np.asarray(np.minimum(near[intervals.first], near[intervals.last]), np.float64)

    def _guards(self, share: float, margin: int) -> Guards:
        """Guard every label beyond its window in the best mechanism.

        Args:
            share: distance from the window, in window lengths. margin: and in outputs, at least.
        """
        line = self.line
        starts = place_windows(line, self.means)
        stops = starts + line.window
        reach = share * line.window
        before = np.minimum(
            np.searchsorted(line.ends, starts, side="right") - 1 - margin,
            np.searchsorted(line.ends, starts - reach, side="right") - 1,
        )
        after = np.maximum(
            np.searchsorted(line.ends, stops) - 1 + margin,
            np.searchsorted(line.ends, stops + reach) - 1,
        )
        labels = np.arange(self.problem.k, dtype=np.int64)
        low, high = before >= 0, after < line.values.size
        return Guards(
            np.concatenate([labels[low], labels[high]]),
            np.concatenate([line.values[before[low]], line.values[after[high]]]),
        )

    def missing(self, point: Iterate, every: bool) -> tuple[Intervals, Runs]:
        """Return the columns that violate the multipliers by more than the gap allows.

        Without ``every``, only the worst of neighbouring ones.
        """
        problem, k, low = self.problem, self.problem.k, self.problem.low
        threshold = 0.1 * self.tolerance * (1.0 + low * (k - 1)) / k
        y, p = problem.labels, problem.prior
        return priced_out(y, p, low, point.alpha, point.beta, threshold, every)

    def _newton_rounds(self, point: Iterate) -> Intervals:
        """Polish, price and add; return what was priced out on the way."""
        problem, k, low = self.problem, self.problem.k, self.problem.low
        missing = no_intervals()
        means, idle = self.means, 0
        for _ in range(_PRICINGS):
            polished = polish(problem, point, means)
            if polished is None:
                break
            means = problem.allowed(column_means(polished.columns, k, low))
            idle = 0 if self.offer(polished, means) else idle + 1
            new, _ = self.missing(polished, False)
            if self.gap <= self.tolerance or len(new) == 0 or idle == _IDLE:
                break
            missing = join(k, missing, new)
            both = join(k, polished.columns.intervals, new)
            point = replace(polished, columns=polished.columns.among(both, k))
        return missing

    def offer(self, point: Iterate, means: Floats) -> bool:
        """Repair a mechanism and multipliers, and keep each if it is the best; whether one was.

        ``means`` [k] are the wanted means of the mechanism.
        """
        problem, columns = self.problem, point.columns
        before = self.bound.value, self.loss
        for used in (point, self._thick(point, _SLIVER)):
            split = complete(problem, used.columns, point.alpha, point.beta)
            if split is not point.alpha:
                self._offer_bound(split, point.beta)
        if len(columns) < 2:
            self._offer_bound(point.alpha, point.beta)
        else:
            line = extra_line(columns.values, columns.weights, problem.low)
            self.offer_line(line, means, point.alpha, point.beta)
        return self.bound.value > before[0] or self.loss < before[1] * (1.0 - 1e-12)

    def _offer_bound(self, alpha: Floats, beta: Floats) -> None:
        bound = prove(self.problem, alpha, beta)
        if bound.value > self.bound.value:
            self.bound = bound

    def offer_line(self, line: ExtraLine, means: Floats, alpha: Floats, beta: Floats) -> None:
        """Keep a mechanism and multipliers, each if it is the best so far.

        Args:
            line: outputs. means: [k] their wanted means. alpha, beta: [k] multipliers.
        """
        problem, low = self.problem, self.problem.low
        self._offer_bound(alpha, beta)
        line = widen(line, means[0], means[-1], low)
        starts = place_windows(line, means)
        error = float(np.abs(line.means(starts) - means).max())
        loss = placed_loss(line, starts, problem.labels, problem.prior, low)
        loss += problem.penalty(means)
        if error <= 1e-12 * float(np.abs(line.values).max()) and loss < self.loss:
            self.line, self.means, self.loss = line, means, loss
        gap = (self.loss - self.bound.value) / self.loss if self.loss else 0.0
        left = f", wanted {self.tolerance:.0e}; time left unknown" if gap > self.tolerance else ""
        self.observer.step(
            f"bound: {1 - max(gap, 0):.10f} of the loss, gap {max(gap, 0):.1e}{left}"
        )


def response_point(problem: Program) -> Iterate:
    """Return debiased randomized response and the multipliers at which its columns touch zero.

    With one column a label the conditions (W₁ + B)/W = v and ½W₂ − A = ½W·v² are k equations for
    the B and k for the A, and α, β follow from A = e^-ε·Σα + (1 − e^-ε)·α_y, likewise for B.
    """
    k, low = problem.k, problem.low
    y, p = problem.labels.astype(np.longdouble), problem.prior.astype(np.longdouble)
    values = y + (k * y - y.sum()) * low / (1.0 - low)
    mass, first, second = (low * t.sum() + (1.0 - low) * t for t in (p, p * y, p * y**2))
    sides = second / 2 - mass * values**2 / 2, mass * values - first
    alpha, beta = ((t - low * t.sum() / (1.0 + low * (k - 1))) / (1.0 - low) for t in sides)
    weights = np.full(k, 1.0 / (1.0 + low * (k - 1)))
    columns = Columns(singletons(k), weights, values.astype(np.float64))
    return Iterate(columns, alpha.astype(np.float64), beta.astype(np.float64))
