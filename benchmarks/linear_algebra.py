"""Sums and solutions of closed forms with two threads of OpenBLAS, beside one thread.

    env -u OPENBLAS_NUM_THREADS python -m benchmarks.linear_algebra

For n rows of p features: XᵀX, its Cholesky factor, and p/2 solutions. One and two threads run in
turns; how many times as long two take, by the clock and by the processor's time: the median of 11
rounds and the quartiles. Prints markdown. The load of the machine decides, and is printed.
"""

import os
import time

import numpy as np
from scipy.linalg import blas, cho_solve, cholesky
from threadpoolctl import threadpool_limits

from benchmarks.randomizing import as_ratio

SHAPES, ROUNDS = ((20, 20_000), (100, 20_000), (500, 5_000), (1_500, 3_000)), 11
CLOCKS = (time.perf_counter, time.process_time)


def solve(rows):
    """One fit."""
    sums = blas.dsyrk(1.0, rows.T, lower=True) + np.eye(rows.shape[1])
    cho_solve((cholesky(sums, lower=True), True), rows[: rows.shape[1] // 2].T)


def times_of(rows, threads):
    """Seconds of the clock and of the processor."""
    with threadpool_limits(threads, user_api="blas"):
        began = [clock() for clock in CLOCKS]
        solve(rows)
        return [clock() - start for clock, start in zip(CLOCKS, began, strict=True)]


def main():
    generator = np.random.default_rng(0)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| p | n | clock, two beside one | processor |\n|---:|---:|---|---|")
    for p, n in SHAPES:
        rows = generator.normal(size=(n, p))
        solve(rows)
        rounds = [[times_of(rows, threads) for threads in (1, 2)] for _ in range(ROUNDS)]
        one, two = (np.array([pair[i] for pair in rounds]).T for i in (0, 1))
        cells = [as_ratio(a, b) for a, b in zip(one, two, strict=True)]
        print(f"| {p:,} | {n:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
