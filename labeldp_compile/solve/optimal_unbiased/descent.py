"""Many labels: level by level from a coarse optimum, until the gap is certified.

Each level starts an interior point from the level above it, close enough that it needs few steps
(`interior_point`). A coarse solution is a solution for all labels up to second order, so each is
also tried for all labels. With many labels, the certified gap is small enough long before the
finest level.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from labeldp_compile.observer import Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import solve_cones
from labeldp_compile.solve.optimal_unbiased.interior_point import solve_near
from labeldp_compile.solve.optimal_unbiased.intervals import (
    Floats,
    Intervals,
    join,
    neighbourhood,
    no_intervals,
)
from labeldp_compile.solve.optimal_unbiased.levels import (
    COARSEST,
    Level,
    coarsen,
    moved_along,
    predicted_means,
)
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.search import Found, Search
from labeldp_compile.solve.optimal_unbiased.windows import (
    ExtraLine,
    Iterate,
    as_windows,
    extra_line,
    place_windows,
    placed_loss,
    window_columns,
)

_RADIUS = 1  # in labels, of the neighbourhood of a predicted path whose labels share windows
_COLD_RADIUS = 2  # if a cone program has no starting point
_ACCURACY = 1e-3  # of a level, relative to the gap above it, or on the last level to the tolerance
_ROUGH = 1e-9  # of a level at least: labels with little weight need it, and the next level them
_PRICINGS = 12  # rounds of further intervals on the last level
_TRIED = 500  # coarse labels from which a level may be the solution of all


@dataclass(frozen=True, eq=False)
class _Solution:
    """A solution of one level, in the problem's units: outputs, means [k] and multipliers [k]."""

    line: ExtraLine
    means: Floats
    alpha: Floats
    beta: Floats

    def scaled(self, unit: float, low: float) -> tuple[ExtraLine, Floats, Floats, Floats]:
        """The same solution in other units."""
        line = extra_line(self.line.values / unit, self.line.weights, low)
        return line, self.means / unit, self.alpha / unit**2, self.beta / unit

    def point(self, unit: float, low: float) -> tuple[Iterate, Floats]:
        """Its columns and multipliers in other units, and the means."""
        line, means, alpha, beta = self.scaled(unit, low)
        return Iterate(window_columns(line, place_windows(line, means), low), alpha, beta), means


def descend(
    problem: Program, solve: Callable[[Program], Found], tolerance: float, observer: Observer
) -> Found:
    """Solve to a certified relative gap of ``tolerance``, or as close as rounding allows.

    Args:
        problem: of more than `COARSEST` labels; a penalty of bias must not be 0.
        solve: solves the coarsest level without a starting point.
        tolerance: relative gap. observer: gets a line per step.
    """
    levels = [Level(problem, np.arange(problem.k))]
    while levels[-1].problem.k > COARSEST:
        levels.append(coarsen(levels[-1].problem))
    coarsest = solve(levels[-1].problem)
    bound = coarsest.bound
    solution = _Solution(coarsest.line, coarsest.means, bound.alpha, bound.beta)
    means = predicted_means(levels[-1].problem, solution.means, problem.labels)
    unit = _unit(problem, solution.line, problem.allowed(means))
    search = Search(problem.scaled(unit), tolerance, observer)
    for place in range(len(levels) - 2, -1, -1):
        fine = levels[place].problem
        tried = fine.k >= _TRIED or place == 0
        # A level reduces the gap by a small factor; only the last one closes it.
        ahead = tolerance if place == 0 else max(search.gap, tolerance)
        accuracy = min(_ROUGH, _ACCURACY * ahead)
        guess = _moved(levels[place + 1], fine, solution)
        solution = _solved(fine, guess, no_intervals(), accuracy, observer)
        if not tried or place == 0:
            continue
        whole = solution
        for above, below in reversed(list(pairwise(levels[: place + 1]))):
            whole = _moved(below, above.problem, whole)
        line, means, alpha, beta = whole.scaled(unit, problem.low)
        search.offer_line(line, means, alpha, beta)
        if search.gap <= tolerance:
            return search.found(unit)
    _finish(problem, search, unit, solution, accuracy)
    return search.found(unit)


def _finish(
    problem: Program, search: Search, unit: float, solution: _Solution, accuracy: float
) -> None:
    """For all labels: price and add intervals, until the gap is certified or nothing helps."""
    further = no_intervals()
    for turn in range(_PRICINGS + 1):
        point, means = solution.point(unit, problem.low)
        search.offer(point, means)
        if search.gap <= search.tolerance:
            return
        new, _ = search.missing(point, True)
        if turn == _PRICINGS or not len(new):
            break
        further = join(problem.k, further, neighbourhood(new, problem.k, _RADIUS))
        solution = _solved(problem, solution, further, accuracy, search.observer)
    search.finish(point)


def _moved(coarse: Level, fine: Program, solution: _Solution) -> _Solution:
    """A coarse solution as a guess of a finer one."""
    means = fine.allowed(predicted_means(coarse.problem, solution.means, fine.labels))
    alpha, beta = moved_along(coarse.problem, fine, coarse.parent, solution.alpha, solution.beta)
    return _Solution(solution.line, means, alpha, beta)


def _unit(problem: Program, line: ExtraLine, means: Floats) -> float:
    """The unit in which the objective is about 1/2."""
    starts = place_windows(line, means)
    loss = placed_loss(line, starts, problem.labels, problem.prior, problem.low)
    return float(np.sqrt(2.0 * (loss + problem.penalty(means))))


def _solved(
    fine: Program, guess: _Solution, further: Intervals, accuracy: float, observer: Observer
) -> _Solution:
    """Solve a level from a guess, over the intervals near its path and further ones."""
    k, low = fine.k, fine.low
    unit = _unit(fine, guess.line, guess.means)
    problem = fine.scaled(unit)
    start, _ = guess.point(unit, low)
    path = start.columns
    # Under a budget labels may share a window, and both its ends move at once.
    close = neighbourhood(path.intervals, k, _RADIUS, ends=1 if fine.bias.unbiased else 2)
    start = replace(start, columns=path.among(join(k, close, further), k))
    found = solve_near(problem, start, accuracy)
    if found is None:
        wide = join(k, neighbourhood(path.intervals, k, _COLD_RADIUS), further)
        found = solve_cones(problem, wide, accuracy)
    observer.step(f"level of {k} labels: {len(found.columns)} intervals, {found.how}")
    columns, means = as_windows(problem, found.columns)
    line = extra_line(columns.values * unit, columns.weights, low)
    return _Solution(line, means * unit, found.alpha * unit**2, found.beta * unit)
