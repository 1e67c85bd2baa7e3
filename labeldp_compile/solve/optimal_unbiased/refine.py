"""Coarse to fine: the intervals for the cone program of the next finer level.

The optimum of merged labels predicts the path of intervals of the next level. Its windows are
placed for the finer labels, and the order in which they begin and end is the path. Only the
neighbourhood of the path is used; on the last level, pricing adds missing intervals.
"""

import functools
from dataclasses import replace

import numpy as np

from labeldp_compile.observer import Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import solve_cones
from labeldp_compile.solve.optimal_unbiased.intervals import (
    Intervals,
    all_intervals,
    join,
    neighbourhood,
    prefixes_and_suffixes,
    singletons,
)
from labeldp_compile.solve.optimal_unbiased.levels import COARSEST, predicted_means
from labeldp_compile.solve.optimal_unbiased.problem import (
    Program,
    merge_neighbours,
    reference_losses,
)
from labeldp_compile.solve.optimal_unbiased.quadratics import quadratics
from labeldp_compile.solve.optimal_unbiased.search import Found, Search
from labeldp_compile.solve.optimal_unbiased.windows import (
    column_means,
    extra_line,
    place_windows,
    window_columns,
)

_SMALLEST_LEVEL = 20  # labels; all intervals of these fit in a few milliseconds
_RADIUS = 2  # of the neighbourhood of the predicted path, in labels
_TOLERANCE = 1e-6  # of the cone programs of merged labels, which only predict
_EXACT = 1e-9  # gap of the level from which finer ones start
_COSTLY = 1e5  # loss of a column at weight one, relative to the loss of the optimum


@np.errstate(over="ignore", invalid="ignore")  # wrong steps are found by their results
def refine(problem: Program, tolerance: float, observer: Observer) -> Found:
    """Solve to a certified relative gap of ``tolerance``, or as close as rounding allows.

    Args:
        problem: in any units. tolerance: relative gap. observer: gets a line per step.
    """
    unit = float(np.sqrt(2.0 * min(reference_losses(problem))))
    search = Search(problem.scaled(unit), tolerance, observer)
    search.try_response()
    first = search.found(unit)
    if search.gap <= tolerance:
        return first
    if problem.k > COARSEST and problem.bias.penalty != 0.0:
        from labeldp_compile.solve.optimal_unbiased.descent import descend  # noqa: PLC0415

        start = functools.partial(refine, tolerance=_EXACT, observer=observer)
        return first.better(descend(problem, start, tolerance, observer))
    sizes = [problem.k]
    while sizes[-1] > _SMALLEST_LEVEL:
        sizes.append((sizes[-1] + 1) // 2)
    coarsest = merge_neighbours(problem, sizes[-1])
    columns = _worth_trying(coarsest, all_intervals(sizes[-1]), min(reference_losses(coarsest)))
    ratio = 1.0
    for size, finer in zip(sizes[:0:-1], sizes[-2::-1], strict=True):
        level = merge_neighbours(problem, size)
        simple = min(reference_losses(level))
        unit = float(np.sqrt(2.0 * ratio * simple))
        cones = solve_cones(level.scaled(unit), columns, _TOLERANCE)
        observer.step(f"level of {size} merged labels: {len(columns)} intervals, {cones.how}")
        if cones.how.endswith("solved"):
            # The optimum relative to the simple mechanisms changes little between levels.
            ratio = min(1.0, ratio * max(2.0 * cones.value, 1e-3))
        used = cones.columns.used()
        found = replace(used, values=used.values * unit)
        means = level.allowed(column_means(found, size, problem.low))
        coarse, level = level, merge_neighbours(problem, finer)
        line = extra_line(found.values, found.weights, problem.low)
        starts = place_windows(line, level.allowed(predicted_means(coarse, means, level.labels)))
        path = window_columns(line, starts, problem.low).intervals
        columns = _worth_trying(level, path, ratio * min(reference_losses(level)))
    unit = float(np.sqrt(2.0 * ratio * min(reference_losses(problem))))
    search = Search(problem.scaled(unit), tolerance, observer)
    search.run(columns)
    return first.better(search.found(unit))


def _worth_trying(problem: Program, path: Intervals, scale: float) -> Intervals:
    """Return the neighbourhood of a path, with a family that is feasible by itself.

    Intervals whose labels alone cost far more than the whole optimum are left out: at large ε they
    ruin the scaling. Pricing would find them if they mattered.
    """
    ends, response = reference_losses(problem)
    k = problem.k
    feasible = prefixes_and_suffixes(k) if ends < response else singletons(k)
    near = neighbourhood(path, k, _RADIUS)
    quad = quadratics(problem, near)
    within = quad.spread - quad.moment**2 / quad.mass
    return join(k, near.take(within <= _COSTLY * scale), feasible)
