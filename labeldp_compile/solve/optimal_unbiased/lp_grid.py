"""Algorithm 1 of the unbiased-randomizer paper on a given output grid, through HiGHS.

Every output has a minimum m_i and P[i | y] = m_i + x_yi with 0 <= x_yi <= (e^ε − 1)·m_i. This needs
kn rows instead of one for every pair of labels. The minima have a small relative error, because
HiGHS's tolerance of about 1e-7 affects only the x. The program works for any loss and is the
independent check of the continuous solver. Its answer is not ε-DP by itself: only the verified
integers are.

Its dual values are not used, because they bound the loss of randomizers on this grid only, and a
certificate states a bound over all outputs. Also, one ε of a sweep does not start from the basis of
another (measured: 0.02 to 0.3 s instead of 0.1 to 0.5 s, 52 labels, 104 outputs). If the optimum is
not unique, the results of a sweep would then depend on the neighbouring ε, and differ from those of
``compile``.

HiGHS runs in its own thread and asks at every iteration whether to continue. The caller's thread
waits, reports the progress, and receives a ^C. It waits for HiGHS to stop: 0.03 s during the
iterations of a program of 82,000 rows, and 1.5 s during its presolve, which does not ask. No thread
outlives the call.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from time import perf_counter

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.solve.optimal_unbiased.problem import Floats

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
    observer: Observer = QUIET,
) -> tuple[Floats, float]:
    """Minimize cost·x over x ≥ 0 with lower ≤ matrix·x ≤ upper.

    With HiGHS's defaults, rows are met to 1e-7 only. The answer is the same on every run.

    Args:
        cost: [n]. matrix: [m, n]. lower, upper: [m], infinite if there is no such side.
        observer: gets a line at the start, every two seconds, and at the end.

    Returns:
        x [n] and its cost.

    Raises:
        UnsolvedError: there is no optimum, or HiGHS gives up. TimeLimitError.
    """
    rows, columns = matrix.shape
    solver = _Silent()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", TIME_LIMIT)
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
    return np.asarray(solver.getSolution().col_value), float(info.objective_function_value)


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
        table: [k, n] P[i | y]. loss: expected loss under the prior.
    """

    table: Floats
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
    k, n = len(labels), len(outputs)
    y, v = np.asarray(labels, np.float64), np.asarray(outputs, np.float64)
    cells = sparse.identity(k * n, format="csr")
    columns = sparse.vstack([sparse.identity(n)] * k, format="csr")
    # Unknowns: x row by row, then the n minima.
    private = sparse.hstack([cells, -float(np.expm1(epsilon)) * columns])
    # Scaled so that both kinds of rows have entries of about one.
    scale = max(1.0, float(np.abs(v).max()))
    sums, right = [np.ones((1, n)), v[None, :] / scale], np.concatenate([np.ones(k), y / scale])
    every = [
        sparse.hstack([sparse.kron(sparse.identity(k), row), np.repeat(row, k, axis=0)])
        for row in sums
    ]
    weighted = np.asarray(prior, np.float64)[:, None] * np.asarray(loss_matrix, np.float64)
    try:
        unknowns, loss = solve_linear_program(
            np.concatenate([weighted.ravel(), weighted.sum(axis=0)]),
            sparse.vstack([private, *every], format="csc"),
            np.concatenate([np.full(k * n, -np.inf), right]),
            np.concatenate([np.zeros(k * n), right]),
            observer=observer,
        )
    except UnsolvedError as error:
        raise ValueError(f"the linear program on {n} outputs was not solved: {error}") from None
    unknowns = np.maximum(unknowns, 0.0)
    return GridSolution(unknowns[: k * n].reshape(k, n) + unknowns[k * n :], loss)
