"""How long the exact RR-on-Bins solver takes: prints a Markdown table of medians.

The prior is a noisy histogram over the labels 0..k−1, like a private estimate of one: two bumps and
a tail, 20 people a label on average, noise of scale 2, whole and not negative.

``--against`` times the proof that a solution is the best instead, on problems that need a grid of
outputs, with that linear program solved by our own method, by Clarabel and by HiGHS.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import clarabel
import highspy
import numpy as np
from scipy import sparse

from labeldp_compile.solve import rr_on_bins_dual
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins
from labeldp_compile.solve.rr_on_bins_interior import GridProgram, solve_grid_program

SIZES = (52, 401, 1_000, 10_000, 100_000)
LOSSES = ("squared", "absolute", "poisson")
EPSILONS = (0.5, 1.0, 4.0)
PROOFS = (
    (60, "squared", 8.0),
    (100, "squared", 8.0),
    (100, "absolute", 4.0),
    (200, "squared", 12.0),
    (200, "absolute", 4.0),
    (401, "squared", 6.0),
    (401, "absolute", 4.0),
    (401, "absolute", 8.0),
)


def histogram(size: int) -> np.ndarray:
    """Counts [k] of the labels 0..k−1."""
    rng = np.random.default_rng(2023)
    y = (np.arange(size) + 0.5) / size
    bumps = np.exp(-0.5 * ((y - 0.2) / 0.05) ** 2) + 0.3 * np.exp(-0.5 * ((y - 0.6) / 0.1) ** 2)
    density = bumps + 0.2 * np.exp(-5.0 * y)
    expected = 20.0 * size * density / density.sum()
    return np.maximum(np.round(rng.poisson(expected) + rng.laplace(scale=2.0, size=size)), 0.0)


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise cost·x such that matrix·x = right in the first rows and ≤ right in the others.

    The unknowns: a, then s by pair of output and label, then t.
    """

    cost: np.ndarray
    matrix: sparse.csc_matrix
    right: np.ndarray
    equalities: int


def linear_program(program: GridProgram) -> LinearProgram:
    """Write out the maxima."""
    # Below the box a difference is never negative, above it never positive: no s is needed.
    sure = program.cost <= program.low
    output, label = np.nonzero(~sure & (program.cost < program.high))
    outputs, labels = program.cost.shape
    pairs, d = output.size, program.totals.size
    unknowns = labels + pairs + 1
    number, one = np.arange(pairs), np.ones(pairs)
    column = sparse.csr_matrix((np.ones(labels), (program.bin_of, np.arange(labels))))
    of_label = sparse.csr_matrix((one, (number, label)), shape=(pairs, labels))
    of_output = sparse.csr_matrix((one, (output, number)), shape=(outputs, pairs))
    certain = sparse.csr_matrix(sure.astype(np.float64))
    every = sparse.identity(unknowns, format="csr")
    blocks = [
        sparse.hstack([column, sparse.csr_matrix((d, pairs + 1))]),
        sparse.hstack([of_label, -sparse.identity(pairs), sparse.csr_matrix((pairs, 1))]),
        sparse.hstack([certain, of_output, -program.scale[:, None]]),
        -every,
        every[:labels],
    ]
    least = np.concatenate([program.low, np.zeros(pairs), [-2.0]])
    room = program.room + (program.cost * sure).sum(axis=1)
    right = [program.totals, program.cost[output, label], room, -least, program.high]
    cost = np.zeros(unknowns)
    cost[-1] = 1.0
    return LinearProgram(cost, sparse.vstack(blocks, format="csc"), np.concatenate(right), d)


def by_clarabel(program):
    """Multipliers of a grid program."""
    lp = linear_program(program)
    rows, unknowns = lp.matrix.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(lp.equalities), clarabel.NonnegativeConeT(rows - lp.equalities)]
    found = clarabel.DefaultSolver(
        sparse.csc_matrix((unknowns, unknowns)), lp.cost, lp.matrix, lp.right, cones, settings
    ).solve()
    return np.asarray(found.x)[: program.low.size]


def by_highs(program, method):
    """The same by HiGHS."""
    lp = linear_program(program)
    solver = highspy.Highs()
    options = {"output_flag": False, "solver": method, "run_crossover": "off"}
    for name in ("primal_feasibility", "dual_feasibility", "ipm_optimality"):
        options[f"{name}_tolerance"] = 1e-10
    for name, value in options.items():
        solver.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = lp.matrix.shape
    model.a_matrix_.num_row_, model.a_matrix_.num_col_ = lp.matrix.shape
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = lp.matrix.indptr, lp.matrix.indices
    model.a_matrix_.value_, model.col_cost_ = lp.matrix.data, lp.cost
    model.col_lower_ = np.full_like(lp.cost, -np.inf)
    model.col_upper_ = np.full_like(lp.cost, np.inf)
    model.row_upper_ = lp.right
    equal = np.arange(lp.right.size) < lp.equalities
    model.row_lower_ = np.where(equal, lp.right, -np.inf)
    solver.passModel(model)
    solver.run()
    return np.asarray(solver.getSolution().col_value)[: program.low.size]


_LARGEST_FOR_HIGHS = 200  # labels
SOLVERS = {
    "own": solve_grid_program,
    "Clarabel": lambda program, *_: (by_clarabel(program), 1.0),
    "HiGHS, interior point": lambda program, *_: (by_highs(program, "ipm"), 1.0),
    "HiGHS, simplex": lambda program, *_: (by_highs(program, "simplex"), 1.0),
}


def against(repeat: int) -> None:
    """Seconds of a whole proof, and how far it is from the loss, with each of the solvers."""
    print("uniform prior; seconds: median (least–most); gap of the proof\n")
    print(f"| k | loss | ε | {' | '.join(SOLVERS)} |")
    print("|---:|---|---:|" + "---|" * len(SOLVERS))
    for size, loss, epsilon in PROOFS:
        labels, prior = np.arange(size, dtype=np.float64), np.full(size, 1.0 / size)
        solution = solve_rr_on_bins(labels, prior, epsilon, loss)
        cells = []
        for name, solve in SOLVERS.items():
            if name.startswith("HiGHS") and size > _LARGEST_FOR_HIGHS:
                cells.append("not tried")
                continue
            rr_on_bins_dual.solve_grid_program = solve
            times = []
            for _ in range(repeat):
                begin = perf_counter()
                alpha = rr_on_bins_dual.dual_of_rr_on_bins(labels, prior, epsilon, loss, solution)
                times.append(perf_counter() - begin)
            gap = max(1.0 - alpha.sum() / solution.loss, 0.0)
            cells.append(f"{median(times):.2f} ({min(times):.2f}–{max(times):.2f}); {gap:.0e}")
        print(f"| {size} | {loss} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--against", action="store_true")
    arguments = parser.parse_args()
    if arguments.against:
        against(arguments.repeat)
        return
    columns = " | ".join(f"ε = {epsilon:g}" for epsilon in arguments.epsilons)
    print(f"milliseconds: median (least–most) of {arguments.repeat} runs; number of bins\n")
    print(f"| k | loss | {columns} |")
    print("|---:|---|" + "---|" * len(arguments.epsilons))
    for size in arguments.sizes:
        labels, prior = np.arange(size, dtype=np.float64), histogram(size)
        for loss in LOSSES:
            cells = []
            for epsilon in arguments.epsilons:
                times = []
                for _ in range(arguments.repeat):
                    begin = perf_counter()
                    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
                    times.append(1e3 * (perf_counter() - begin))
                spread = f"{min(times):.3g}–{max(times):.3g}"
                cells.append(f"{median(times):.3g} ({spread}); {solution.values.size}")
            print(f"| {size:,} | {loss} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
