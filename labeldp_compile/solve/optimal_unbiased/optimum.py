"""The public solver: reduce, solve from coarse to fine, return the result for all labels.

The optimum of merged labels predicts the path of intervals of the next level. Its windows are
placed for the finer labels, and the order in which they begin and end is the path. Only the
neighbourhood of the path is used; on the last level, pricing adds missing intervals.

``solve_lp_grid`` is Algorithm 1 of the unbiased-randomizer paper on a given output grid, through
HiGHS. Every output has a minimum m_i and P[i | y] = m_i + x_yi with 0 <= x_yi <= (e^ε − 1)·m_i.
This needs kn rows instead of one for every pair of labels. The minima have a small relative error,
because HiGHS's tolerance of about 1e-7 affects only the x. The program works for any loss and is
the independent check of the continuous solver. Its answer is not ε-DP by itself: only the verified
integers are.

Its dual values are not used, because they bound the loss of randomizers on this grid only, and a
certificate states a bound over all outputs. Those of ``solve_lp_costs`` are, because ``least_cost``
checks them at all outputs that have costs. Also, one ε of a sweep does not start from the basis of
another (measured: 0.02 to 0.3 s instead of 0.1 to 0.5 s, 52 labels, 104 outputs). If the optimum is
not unique, the results of a sweep would then depend on the neighbouring ε, and differ from those of
``compile``.

HiGHS runs in its own thread and asks at every iteration whether to continue. The caller's thread
waits, reports the progress, and receives a ^C. It waits for HiGHS to stop: 0.03 s during the
iterations of a program of 82,000 rows, and 1.5 s during its presolve, which does not ask. No thread
outlives the call.
"""

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter
from typing import Literal

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.solve.optimal_unbiased.cone_program import quadratics, solve_cones
from labeldp_compile.solve.optimal_unbiased.dual import prove
from labeldp_compile.solve.optimal_unbiased.problem import (
    COARSEST,
    BiasBudget,
    ExtraLine,
    Floats,
    Intervals,
    Ints,
    Program,
    all_intervals,
    column_means,
    deciding_labels,
    extra_line,
    join,
    merge_neighbours,
    neighbourhood,
    place_windows,
    placed_loss,
    predicted_means,
    prefixes_and_suffixes,
    reference_losses,
    singletons,
    widen,
    window_columns,
)
from labeldp_compile.solve.optimal_unbiased.search import Found, Search

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
    search.tighten()
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


TIME_LIMIT = 3600.0
"""Seconds that one linear program may take."""
_BETWEEN_LINES = 2.0  # seconds
_BY_COLUMN, _MINIMISE = int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMinimize)


class TimeLimitError(InputError):
    """A linear program took longer than it may."""


class UnsolvedError(ValueError):
    """HiGHS found no optimum: the program has none, or its numbers are out of range."""


def solve_linear_program(
    cost: Floats,
    matrix: sparse.csc_matrix,
    lower: Floats,
    upper: Floats,
    *,
    method: Literal["simplex", "ipm"] | None = None,
    observer: Observer = QUIET,
) -> tuple[Floats, Floats, float]:
    """Minimize cost·x over x ≥ 0 with lower ≤ matrix·x ≤ upper.

    With HiGHS's defaults, rows are met to 1e-7 only. The answer is the same on every run.

    Args:
        cost: [n]. matrix: [m, n]. lower, upper: [m], infinite if there is no such side.
        method: to use up to tolerances of 1e-10; None for HiGHS's defaults. The interior-point
            method ends without a basis, and is much faster for large programs.
        observer: gets a line at the start, every two seconds, and at the end.

    Returns:
        x [n], the dual values of the rows [m], and the cost of x.

    Raises:
        UnsolvedError: there is no optimum, or HiGHS gives up. TimeLimitError.
    """
    rows, columns = matrix.shape
    solver = _Silent()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", TIME_LIMIT)
    if method is not None:
        solver.setOptionValue("solver", method)
        solver.setOptionValue("run_crossover", "off")
        for what in ("ipm_optimality", "primal_feasibility", "dual_feasibility"):
            solver.setOptionValue(f"{what}_tolerance", 1e-10)
    given = solver.passModel(
        *(columns, rows, matrix.nnz, _BY_COLUMN, _MINIMISE, 0.0),
        *(cost, np.zeros(columns), np.full(columns, highspy.kHighsInf), lower, upper),
        *(matrix.indptr, matrix.indices, matrix.data, np.zeros(columns, np.int32)),
    )
    if given == HighsStatus.kError:
        raise UnsolvedError("its numbers are outside the range of HiGHS")
    observer.step(f"linear program of {rows:,} rows and {columns:,} columns")
    _run(solver, observer)
    status, info = solver.getModelStatus(), solver.getInfo()
    if status == HighsModelStatus.kTimeLimit:
        raise TimeLimitError(
            f"a linear program of {rows:,} rows and {columns:,} columns was not solved within "
            f"{TIME_LIMIT:,g} s; use fewer outputs"
        )
    if status != HighsModelStatus.kOptimal:
        raise UnsolvedError(f"HiGHS says: {solver.modelStatusToString(status)}")
    observer.step(f"linear program: optimal after {info.simplex_iteration_count:,} iterations")
    found = solver.getSolution()
    duals = np.asarray(found.row_dual)
    return np.asarray(found.col_value), duals, float(info.objective_function_value)


class _Silent(highspy.Highs):  # type: ignore[misc]  # highspy has no types
    """HiGHS 1.16 prints who it is on stdout while it is made, before an option can be set."""

    def enableCallbacks(self) -> None:  # noqa: N802  # its constructor calls this
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def _run(solver: highspy.Highs, observer: Observer) -> None:
    """Run HiGHS in a thread until it ends, or until this thread is interrupted."""
    stop, iterations, start = Event(), 0, perf_counter()

    def watch(event: "highspy.HighsCallbackEvent") -> None:
        nonlocal iterations
        iterations = max(iterations, event.data_out.simplex_iteration_count)
        if stop.is_set():
            event.interrupt()

    solver.cbSimplexInterrupt += watch
    solver.cbIpmInterrupt += watch  # if the simplex method fails
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(solver.run)
        try:
            while True:
                try:
                    running.result(timeout=_BETWEEN_LINES)
                    return
                except TimeoutError:
                    seconds = perf_counter() - start
                    observer.step(
                        f"linear program: {iterations:,} iterations in {seconds:.0f} s; time left "
                        f"unknown, at most {TIME_LIMIT - seconds:,.0f} s"
                    )
        finally:
            stop.set()  # leaving the block waits for the thread


@dataclass(frozen=True, eq=False)
class GridSolution:
    """Answer of the grid LP.

    Attributes:
        table: [k, n] P[i | y]. minima: [n] at most its columns'. loss: under the prior.
        duals: of the conditions on each row: [k] of its sum, and then of its mean, if there is one.
    """

    table: Floats
    minima: Floats
    duals: Floats
    loss: float


def solve_lp_grid(
    labels: NDArray[np.floating],
    prior: NDArray[np.floating],
    epsilon: float,
    outputs: NDArray[np.floating],
    loss_matrix: NDArray[np.floating],
    observer: Observer = QUIET,
) -> GridSolution:
    """Solve the linear program: P with E[output | y] = y.

    Args:
        labels: [k]. prior: [k], sums to 1. epsilon: privacy parameter.
        outputs: [n] allowed output values. loss_matrix: [k, n] loss of output i for label y.
        observer: gets a line every few seconds.

    Raises:
        ValueError: no mechanism on this grid meets the constraints, or HiGHS gives up.
        TimeLimitError: after an hour.
    """
    y, v = np.asarray(labels, np.float64), np.asarray(outputs, np.float64)
    # Scaled so that both kinds of rows have entries of about one.
    scale = max(1.0, float(np.abs(v).max()))
    sums = [(np.ones(len(v)), np.ones(len(y))), (v / scale, y / scale)]
    weighted = np.asarray(prior, np.float64)[:, None] * np.asarray(loss_matrix, np.float64)
    return _solve_table(weighted, epsilon, sums, observer=observer)


def solve_lp_costs(
    costs: Floats,
    prior: Floats,
    epsilon: float,
    observer: Observer = QUIET,
    more: NDArray[np.bool_] | None = None,
) -> GridSolution:
    """Solve the linear program of ``solve_lp_grid`` without the means, for any costs.

    Args:
        costs: [k, n] of label y and output i, ≥ 0, and not the same for all labels.
        prior: [k], sums to 1. epsilon: privacy parameter.
        observer: gets a line every few seconds.
        more: [k, n], where an output may get more than its least probability; None is everywhere.

    Raises:
        ValueError: HiGHS gives up. TimeLimitError: after an hour.
    """
    k, n = costs.shape
    sums = [(np.ones(n), np.ones(k))]
    # HiGHS's tolerances are absolute. This loss is within a small factor of the least.
    least, often = costs.min(axis=1), np.bincount(costs.argmin(axis=1), minlength=n)
    rest = float(np.exp(-epsilon))
    response = prior @ (rest * (costs @ often) + (1 - rest) * least) / (k * rest + 1 - rest)
    unit = min(response, float((prior @ costs).min())) / _LARGE or 1.0
    weighted = prior[:, None] * costs / unit
    method: Literal["simplex", "ipm"] = "ipm" if k * n > _FEW_CELLS else "simplex"
    found = _solve_table(weighted, epsilon, sums, more, method=method, observer=observer)
    return replace(found, loss=found.loss * unit, duals=found.duals * unit)


_FEW_CELLS, _LARGE = 900, 10.0


def _solve_table(
    weighted: Floats,
    epsilon: float,
    sums: Sequence[tuple[Floats, Floats]],
    more: NDArray[np.bool_] | None = None,
    *,
    method: Literal["simplex", "ipm"] | None = None,
    observer: Observer,
) -> GridSolution:
    """The least Σ weighted·P of ε-DP tables P with P·v = w for each (v [n], w [k]) of ``sums``."""
    k, n = weighted.shape
    kept = np.ones(k * n, bool) if more is None else more.ravel()
    each = sparse.identity(k * n, format="csc")[:, kept]
    cells = sparse.identity(each.shape[1], format="csr")
    columns = sparse.vstack([sparse.identity(n)] * k, format="csr")[kept]
    # Unknowns: x row by row, then the n minima times the scale.
    growth = float(np.expm1(epsilon))
    scale = 1.0 if method is None else max(growth, 1.0)
    private = sparse.hstack([cells, -growth / scale * columns])
    every = [
        sparse.hstack(
            [
                sparse.kron(sparse.identity(k), row[None, :], format="csr") @ each,
                np.tile(row / scale, (k, 1)),
            ]
        )
        for row, _ in sums
    ]
    right = np.concatenate([side for _, side in sums])
    none = np.zeros(cells.shape[0])
    try:
        unknowns, duals, loss = solve_linear_program(
            np.concatenate([weighted.ravel()[kept], weighted.sum(axis=0) / scale]),
            sparse.vstack([private, *every], format="csc"),
            np.concatenate([none - np.inf, right]),
            np.concatenate([none, right]),
            method=method,
            observer=observer,
        )
    except UnsolvedError as error:
        raise ValueError(f"the linear program on {n} outputs was not solved: {error}") from None
    unknowns = np.maximum(unknowns, 0.0)
    minima = unknowns[none.size :] / scale
    table = np.tile(minima, k)
    table[kept] += unknowns[: none.size]
    return GridSolution(table.reshape(k, n), minima, duals[none.size :], loss)
