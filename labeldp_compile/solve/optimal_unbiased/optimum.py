"""The public solver: reduce, solve from coarse to fine, return the result for all labels.

The optimum of merged labels predicts the path of intervals of the next level. Its windows are
placed for the finer labels, and the order in which they begin and end is the path. Only the
neighbourhood of the path is used; on the last level, pricing adds missing intervals.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import solve_cones
from labeldp_compile.solve.optimal_unbiased.dual import prove
from labeldp_compile.solve.optimal_unbiased.problem import (
    COARSEST,
    BiasBudget,
    Floats,
    Intervals,
    Ints,
    Program,
    all_intervals,
    deciding_labels,
    join,
    merge_neighbours,
    neighbourhood,
    predicted_means,
    prefixes_and_suffixes,
    reference_losses,
    singletons,
)
from labeldp_compile.solve.optimal_unbiased.search import Found, Search
from labeldp_compile.solve.optimal_unbiased.terms import quadratics
from labeldp_compile.solve.optimal_unbiased.windows import (
    ExtraLine,
    column_means,
    extra_line,
    place_windows,
    placed_loss,
    widen,
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
        from labeldp_compile.solve.optimal_unbiased.many_labels import descend  # noqa: PLC0415

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


@dataclass(frozen=True, eq=False)
class UnbiasedSolution:
    """An ε-DP randomizer with exact means and a proof of how good it is.

    Attributes:
        values: [m] outputs, strictly increasing, m <= 2k.
        weights: [m] c, the low entry Pr[v | y] of labels whose window does not cover the output.
            If it does, the entry is e^ε·c. A label that never or rarely occurs may have an entry in
            between at the two ends of its window.
        means: [k] E[output | y]; the labels when unbiased.
        starts: [k] where the window of each label begins on the line of extra probability.
        loss: ½E(v̂ − y)² under the prior.
        objective: loss plus the penalty of the bias budget, if any.
        lower_bound: no ε-DP randomizer within the bias budget has a smaller objective, with any
            outputs (weak duality; evaluated in floating point).
        alpha, beta: [k] the multipliers that prove it; F >= 0 up to rounding.
        gap: (objective − lower_bound) / objective, if the objective is not zero.
    """

    values: Floats
    weights: Floats
    means: Floats
    starts: Floats
    loss: float
    objective: float
    lower_bound: float
    alpha: Floats
    beta: Floats
    gap: float


def solve_optimal_unbiased(
    labels: NDArray[np.floating] | Ints,
    prior: NDArray[np.floating],
    epsilon: float,
    *,
    bias: BiasBudget | None = None,
    tolerance: float = 1e-8,
    observer: Observer = QUIET,
) -> UnbiasedSolution:
    """Find the ε-DP randomizer of least squared loss among those with the wanted means.

    Args:
        labels: [k] finite, strictly increasing, k >= 2.
        prior: [k] nonnegative, not all zero, normalized here.
        epsilon: privacy parameter > 0, tested from 0.01 to 20.
        bias: how far means may be from labels; by default, not at all.
        tolerance: relative gap at which to stop.
        observer: gets a line per step.

    Returns:
        The best mechanism and the best bound that were found. ``gap`` is the distance between them.
        It is at most ``tolerance`` unless floating point stopped the search earlier.
    """
    y, p = np.asarray(labels, np.float64), np.asarray(prior, np.float64)
    p = p / p.sum()
    low = float(np.exp(-epsilon))
    # Centred for accuracy; the problem is invariant.
    centre = 0.5 * float(y[0] + y[-1])
    full = Program(y - centre, p, low, bias or BiasBudget())
    # A label left out can cost about range²/8 times its mass.
    span = float(full.labels[-1] - full.labels[0])
    negligible = 0.01 * tolerance * min(reference_losses(full)) / (span**2 / 8.0)
    if not full.bias.unbiased:
        # The optimum may be far below the unbiased one, and the bias of rare labels has a price.
        negligible *= 1e-3 / (1.0 + 2.0 * (full.bias.penalty or 0.0))
    kept = deciding_labels(full, min(negligible, tolerance))
    core = Program(full.labels[kept], p[kept], low, full.bias)
    found = refine(core, tolerance, observer)

    means = full.allowed(predicted_means(core, found.means, full.labels))
    if full.bias.penalty is not None:
        means = np.clip(means, found.means[0], found.means[-1])
    line = widen(_distinct(found.line, low), means[0], means[-1], low)
    starts = place_windows(line, means)
    loss = placed_loss(line, starts, full.labels, p, low)
    objective = loss + full.penalty(means)
    alpha, beta = np.zeros(full.k), np.zeros(full.k)
    alpha[kept], beta[kept] = found.bound.alpha, found.bound.beta
    bound = prove(full, alpha, beta)
    return UnbiasedSolution(
        values=line.values + centre,
        weights=low * line.weights,
        means=line.means(starts) + centre,
        starts=starts,
        loss=loss,
        objective=objective,
        lower_bound=bound.value,
        # α + β·v with v measured from the centre is (α − β·centre) + β·v with v itself.
        alpha=bound.alpha - bound.beta * centre,
        beta=bound.beta,
        gap=(objective - bound.value) / max(objective, 1e-12 * span**2),
    )


def _distinct(line: ExtraLine, low: float) -> ExtraLine:
    """Merge outputs of the same value: they are one output."""
    values, where = np.unique(line.values, return_inverse=True)
    weights = np.zeros(values.size)
    np.add.at(weights, where, line.weights)
    return extra_line(values, weights, low)
