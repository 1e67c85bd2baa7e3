"""The LP on given outputs: its optimum, its minima, and how it reports, stops and gives up."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.optimize import linprog

from labeldp_compile.errors import InputError
from labeldp_compile.observer import Observer
from labeldp_compile.rounding.windows import even_outputs
from labeldp_compile.solve.optimal_unbiased import optimum
from labeldp_compile.solve.optimal_unbiased.optimum import (
    TimeLimitError,
    UnsolvedError,
    solve_linear_program,
    solve_lp_grid,
)


def problem(k, outputs, epsilon, loss="squared", base=0.9):
    labels, prior = np.arange(float(k)), base ** np.arange(k)
    values = np.array(even_outputs(labels, epsilon, outputs))
    gap = np.abs(values - labels[:, None])
    return labels, prior / prior.sum(), epsilon, values, 0.5 * gap**2 if loss == "squared" else gap


def by_definition(labels, prior, epsilon, values, losses):
    """The least loss over P with P[i | y] ≤ e^ε·P[i | z] for all pairs of labels, by SciPy."""
    k, n = losses.shape
    rows = []
    for i in range(n):
        for y in range(k):
            for z in range(k):
                if y != z:
                    row = np.zeros((k, n))
                    row[y, i], row[z, i] = 1.0, -np.exp(epsilon)
                    rows.append(row.ravel())
    sums, right = np.kron(np.eye(k), np.ones(n)), np.ones(k)
    sums = np.vstack([sums, np.kron(np.eye(k), values)])
    right = np.concatenate([right, labels])
    cost = (prior[:, None] * losses).ravel()
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, right, method="highs")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_optimum_is_that_of_the_definition(epsilon, loss):
    given = problem(6, 11, epsilon, loss)
    found = solve_lp_grid(*given)
    assert found.loss == pytest.approx(by_definition(*given), rel=1e-9)
    labels, prior, _, values, losses = given
    assert prior @ (found.table * losses).sum(axis=1) == pytest.approx(found.loss, rel=1e-9)
    np.testing.assert_allclose(found.table.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.table @ values, labels, rtol=0, atol=1e-8)


SOLVING = """
import numpy as np
from labeldp_compile.solve.optimal_unbiased import optimum
row = optimum.sparse.csc_matrix(np.ones((1, 2)))
optimum.solve_linear_program(np.ones(2), row, np.ones(1), np.ones(1))
"""


def test_the_solver_says_nothing():
    """Standard output is for JSON and paths. HiGHS would say something once in a process."""
    done = subprocess.run([sys.executable, "-c", SOLVING], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_an_interrupt_ends_it_and_leaves_no_thread(limit):
    limit(optimum, "_BETWEEN_LINES", 1e-4)
    before = set(threading.enumerate())

    def interrupt(line):
        if "iterations in" in line:
            signal.raise_signal(signal.SIGINT)

    # It would take minutes.
    with pytest.raises(KeyboardInterrupt):
        solve_lp_grid(*problem(100, 400, 1.0), observer=Observer(step=interrupt))
    assert set(threading.enumerate()) == before


def test_a_time_limit_is_one_clear_error(limit):
    limit(optimum, "TIME_LIMIT", 1e-3)
    message = (
        r"^a linear program of 1,860 rows and 1,860 columns was not solved within 0.001 s; use"
    )
    with pytest.raises(TimeLimitError, match=message) as error:
        solve_lp_grid(*problem(30, 60, 1.0))
    # Not a ValueError, upon which a smaller ε would be tried.
    assert isinstance(error.value, InputError) and not isinstance(error.value, ValueError)


def test_what_has_no_optimum_says_so():
    given = list(problem(4, 9, 1.0))
    given[3] = given[3] + 1e3  # no mixture of these outputs has a small mean
    with pytest.raises(ValueError, match=r"9 outputs was not solved: HiGHS says: Infeasible"):
        solve_lp_grid(*given)
    labels, prior, _, values, losses = problem(4, 9, 1.0)
    with pytest.raises(ValueError, match="outside the range of HiGHS"):
        solve_lp_grid(labels, prior, 60.0, values, losses)
    unbounded = optimum.sparse.csc_matrix(np.array([[1.0, -1.0]]))
    with pytest.raises(UnsolvedError, match="HiGHS says"):
        solve_linear_program(np.array([-1.0, 0.0]), unbounded, np.zeros(1), np.zeros(1))
