"""Many labels, no bias: level by level from a coarse optimum, until the gap is certified.

Each level starts an interior point from the level above it, close enough that it needs few steps
(`interior_point`). As a coarse solution is one of all labels up to second order, each is tried as
that, too: with many labels a certified gap small enough is reached long before the finest level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from labeldp_compile.solve.optimal_unbiased.cone_program import solve_cones
from labeldp_compile.solve.optimal_unbiased.interior_point import solve_near
from labeldp_compile.solve.optimal_unbiased.intervals import (
    Floats,
    Intervals,
    Ints,
    neighbourhood,
)
from labeldp_compile.solve.optimal_unbiased.levels import Level, coarsen, moved_along
from labeldp_compile.solve.optimal_unbiased.problem import Problem
from labeldp_compile.solve.optimal_unbiased.search import Found, Progress, Search
from labeldp_compile.solve.optimal_unbiased.windows import (
    Columns,
    ExtraLine,
    extra_line,
    place_windows,
    placed_loss,
    window_columns,
)

COARSEST = 250
"""Labels up to which cone programs alone are as fast."""
_RADIUS = 1  # of the neighbourhood of the predicted path, in labels
_COLD_RADIUS = 2  # where a cone program starts from nothing
_ACCURACY = 1e-3  # of a level, relative to the gap that is wanted
_ROUGH = 1e-7  # of levels too coarse to be tried as solutions
_TRIED = 500  # groups from which a level may be the solution of all labels


@dataclass(frozen=True, eq=False)
class _Solution:
    """Of one level, in the problem's own units: its outputs and its multipliers [k]."""

    line: ExtraLine
    alpha: Floats
    beta: Floats


def descend(
    problem: Problem,
    solve: Callable[[Problem], Found],
    tolerance: float,
    progress: Progress,
) -> Found:
    """Solve to a certified relative gap of ``tolerance``, or as near as rounding lets.

    Args:
        problem: unbiased, of more than `COARSEST` labels.
        solve: solves the coarsest level from nothing.
        tolerance: relative gap. progress: told a line per step.
    """
    levels = [Level(problem, np.arange(problem.k))]
    while levels[-1].problem.k > COARSEST:
        levels.append(coarsen(levels[-1].problem))
    coarsest = solve(levels[-1].problem)
    solution = _Solution(coarsest.line, coarsest.bound.alpha, coarsest.bound.beta)
    unit = _unit(problem, solution.line)
    search = Search(problem.scaled(unit), tolerance, progress)
    for place in range(len(levels) - 2, -1, -1):
        fine = levels[place].problem
        tried = fine.k >= _TRIED or place == 0
        accuracy = _ACCURACY * tolerance if tried else _ROUGH
        solution = _solved(levels[place + 1], fine, solution, accuracy, progress)
        if not tried:
            continue
        alpha, beta = _of_all(levels[: place + 1], solution)
        line = _scaled(solution.line, unit, problem.low)
        search.offer(line, search.problem.labels, alpha / unit**2, beta / unit)
        if search.gap <= tolerance:
            return search.found(unit)
    line = _scaled(solution.line, unit, problem.low)
    active = window_columns(line, place_windows(line, search.problem.labels), problem.low)
    search.finish(active, solution.alpha / unit**2, solution.beta / unit)
    return search.found(unit)


def _unit(problem: Problem, line: ExtraLine) -> float:
    """The unit in which the loss is about 1/2."""
    starts = place_windows(line, problem.labels)
    loss = placed_loss(line, starts, problem.labels, problem.prior, problem.low)
    return float(np.sqrt(2.0 * loss))


def _scaled(line: ExtraLine, unit: float, low: float) -> ExtraLine:
    return extra_line(line.values / unit, line.weights, low)


def _of_all(levels: list[Level], solution: _Solution) -> tuple[Floats, Floats]:
    """The multipliers of all labels from those of the last of the levels."""
    alpha, beta = solution.alpha, solution.beta
    for finer, coarse in reversed(list(pairwise(levels))):
        alpha, beta = moved_along(coarse.problem, finer.problem, coarse.group, alpha, beta)
    return alpha, beta


def _solved(
    coarse: Level, fine: Problem, solution: _Solution, accuracy: float, progress: Progress
) -> _Solution:
    """A level from the solution of the coarser one."""
    k, low = fine.k, fine.low
    unit = _unit(fine, solution.line)
    problem, line = fine.scaled(unit), _scaled(solution.line, unit, low)
    path = window_columns(line, place_windows(line, problem.labels), low)
    alpha, beta = moved_along(coarse.problem, fine, coarse.group, solution.alpha, solution.beta)
    near = neighbourhood(path.intervals, k, _RADIUS)
    weights = np.zeros(len(near))
    weights[_positions(near, path.intervals, k)] = path.weights
    found = solve_near(problem, near, weights, alpha / unit**2, beta / unit, accuracy)
    if found is not None:
        progress(f"level of {k} labels: {len(near)} intervals, {found.steps} steps")
        columns, alpha, beta = found.columns, found.alpha, found.beta
    else:
        wide = neighbourhood(path.intervals, k, _COLD_RADIUS)
        cones = solve_cones(problem, wide, accuracy)
        progress(f"level of {k} labels: {len(wide)} intervals, {cones.status.lower()}")
        columns, alpha, beta = Columns(wide, cones.weights, cones.values), cones.alpha, cones.beta
    # As windows: exact means, at most two outputs a label.
    line = extra_line(columns.values, columns.weights, low)
    columns = window_columns(line, place_windows(line, problem.labels), low)
    line = extra_line(columns.values * unit, columns.weights, low)
    return _Solution(line, alpha * unit**2, beta * unit)


def _positions(among: Intervals, some: Intervals, k: int) -> Ints:
    keys = among.first * k + among.last
    return np.searchsorted(keys, some.first * k + some.last).astype(np.int64)
