"""The exact unbiased solver beside Algorithm 1 through HiGHS on grids, in one run.

For each prior, k and ε: seconds (median and range), loss and relative gap of the exact
solver; for k = 52 and 53 at ε = 1 also seconds and loss of the linear program in its compact form
(one minimum an output, kn rows) on grids of n outputs, and what it takes with two rows a cell and
through SciPy. Prints markdown; ``--plot`` draws the bias frontier on a claim-count prior and the
loss against the grid. ``--many`` prints the time against the number of labels instead, up to
100,000, each in a process of its own. ``--real DIR`` adds the histograms of the census_kdd_train,
adult_train and randhie parquet files in DIR. ``--programs`` prints the linear programs only,
``--equal-rows`` the gaps of a large bias budget. Random priors are in ``solver_grid.py``.
"""

import argparse
import math
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from scipy import sparse
from scipy.optimize import linprog

from labeldp_compile.rounding.windows import even_outputs
from labeldp_compile.solve.optimal_unbiased.optimum import solve_lp_grid, solve_optimal_unbiased
from labeldp_compile.solve.optimal_unbiased.problem import BiasBudget

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
RUNS = {52: 5, 401: 3, 1001: 1, 4001: 1}
GRIDS = (52, 104, 208, 416)
PROGRAMS = (
    ("uniform", 52, 1.0),
    ("uniform", 104, 1.0),
    ("uniform", 104, 4.0),
    ("spiked", 208, 1.0),
)
MANY = (401, 1_001, 4_001, 20_000, 100_000)
MANY_GAP = 1e-7  # where the compiler stops, with many labels
CLAIMS = [9500, 420, 65, 12, 2.4, 0.5, 0.1, 0.02, 0.004, 0.001, *[0.0002] * 7]
REAL = (
    ("weeks worked", "census_kdd_train.parquet", "weeks_worked_in_year", 53),
    ("hours a week", "adult_train.parquet", "hours_per_week", 100),
    ("doctor visits", "randhie.parquet", "mdvis", 78),
)


def priors(k):
    generator = np.random.default_rng(7)
    return {
        "uniform": np.ones(k),
        "geometric": 0.9 ** np.arange(k),
        "spiked": np.r_[0.5, np.full(k - 2, 1 / 6 / (k - 2)), 1 / 3],
        "sparse": generator.exponential(size=k) * (generator.random(k) < 0.25),
    }


def smooth_priors(k):
    """Shapes that are the same with any number of labels."""
    x = np.arange(k) / k
    return {
        "uniform": np.ones(k),
        "geometric, mean k/5": np.exp(-5 * x),
        "spiked": priors(k)["spiked"],
        "two bumps": np.exp(-(((x - 0.25) / 0.07) ** 2) / 2)
        + np.exp(-(((x - 0.7) / 0.1) ** 2) / 2) / 2,
        "rough": np.random.default_rng(0).exponential(size=k),
        "1/(1 + y)^1.5": (1.0 + np.arange(k)) ** -1.5,
    }


def repeated(name, k, epsilon, runs):
    """Processor seconds of each solve, gap and outputs of the last, and MiB at the most."""
    prior, times = smooth_priors(k)[name], []
    for _ in range(runs):
        start = time.process_time()
        found = solve_optimal_unbiased(np.arange(float(k)), prior, epsilon, tolerance=MANY_GAP)
        times.append(time.process_time() - start)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return times, found.gap, len(found.values), most


def many(epsilons, chosen, runs=5):
    """Time against the number of labels, and its exponent."""
    print(f"Up to a gap of {MANY_GAP:g}: processor seconds, medians of {runs} and ranges;")
    print("from 20,000 labels on of 3\n")
    head = " | ".join(f"k = {k:,}" for k in MANY)
    print(f"| prior | ε | {head} | exponent | gap, outputs, MiB at the last |")
    print(f"|---|---:|{'---:|' * len(MANY)}---:|---|")
    fresh = multiprocessing.get_context("spawn")
    for name in chosen or smooth_priors(10):
        for epsilon in epsilons:
            cells, medians = [], []
            for k in MANY:
                with ProcessPoolExecutor(1, fresh) as pool:
                    turns = runs if k < MANY[-2] else 3
                    job = pool.submit(repeated, name, k, epsilon, turns)
                    times, gap, outputs, most = job.result()
                medians.append(median(times))
                cells.append(f"{medians[-1]:.2f} ({min(times):.2f}–{max(times):.2f})")
            exponent = np.polyfit(np.log(MANY), np.log(medians), 1)[0]
            last = f"{gap:.0e}, {outputs:,}, {most:.0f}"
            line = " | ".join([name, f"{epsilon:g}", *cells, f"{exponent:.2f}", last])
            print(f"| {line} |", flush=True)


def exact(labels, prior, epsilon, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        solution = solve_optimal_unbiased(labels, prior, epsilon)
        times.append(time.perf_counter() - start)
    return times, solution


def row(name, prior, epsilons, runs):
    k = len(prior)
    labels, prior = np.arange(float(k)), prior / prior.sum()
    for epsilon in epsilons:
        times, found = exact(labels, prior, epsilon, runs)
        spread = f" ({min(times):.3f}–{max(times):.3f})" if runs > 1 else ""
        print(
            f"| {name} | {k} | {epsilon:g} | {median(times):.3f}{spread} | {found.loss:.8g} | "
            f"{found.gap:.1e} | {len(found.values)} |",
            flush=True,
        )


def against_grids(name, prior, epsilon, sizes):
    k = len(prior)
    labels, prior = np.arange(float(k)), prior / prior.sum()
    times, found = exact(labels, prior, epsilon, 5)
    ours, points = median(times), []
    print(f"\n{name} prior, k = {k}, ε = {epsilon:g}, in one run\n")
    print("| solver | outputs | seconds | times ours | loss | above the exact loss |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| exact | {len(found.values)} | {ours:.3f} | 1 | {found.loss:.6f} | 0 |")
    for size in sizes:
        outputs = np.array(even_outputs(labels, epsilon, size))
        errors = 0.5 * (outputs[None, :] - labels[:, None]) ** 2
        start = time.perf_counter()
        loss = solve_lp_grid(labels, prior, epsilon, outputs, errors).loss
        seconds = time.perf_counter() - start
        points.append((size, loss / found.loss - 1))
        print(
            f"| Algorithm 1, HiGHS | {size} | {seconds:.2f} | {seconds / ours:.0f} | {loss:.6f} | "
            f"{loss / found.loss - 1:.1e} |",
            flush=True,
        )
    return points


def two_rows_a_cell(labels, prior, epsilon, outputs, errors):
    """Least loss by SciPy, with m <= P and P <= e^ε·m for every cell."""
    k, n = errors.shape
    cells = sparse.identity(k * n)
    minima = sparse.vstack([sparse.identity(n)] * k)
    upper = sparse.hstack([cells, -math.exp(epsilon) * minima])
    rows = sparse.vstack([sparse.hstack([-cells, minima]), upper], "csr")
    scale = np.abs(outputs).max()
    every = [sparse.kron(sparse.identity(k), r) for r in (np.ones((1, n)), outputs[None] / scale)]
    sums = sparse.hstack([sparse.vstack(every), sparse.csr_matrix((2 * k, n))], "csr")
    cost = np.concatenate([(prior[:, None] * errors).ravel(), np.zeros(n)])
    right = np.concatenate([np.ones(k), labels / scale])
    return linprog(cost, rows, np.zeros(2 * k * n), sums, right, (0, None), method="highs").fun


def programs(k=52, runs=3):
    """The linear program of Algorithm 1 as it is solved, and as it was."""
    print("\nThe linear program of Algorithm 1, in one run\n")
    print(
        "| prior | outputs | ε | 2kn rows, SciPy | kn rows, highspy | factor | losses differ by |"
    )
    print("|---|---:|---:|---|---|---:|---:|")
    for name, size, epsilon in PROGRAMS:
        labels, prior = np.arange(float(k)), priors(k)[name]
        prior = prior / prior.sum()
        outputs = np.array(even_outputs(labels, epsilon, size))
        errors = 0.5 * (outputs[None, :] - labels[:, None]) ** 2
        times, losses = ([], []), []
        for _ in range(runs):
            start = time.perf_counter()
            before = two_rows_a_cell(labels, prior, epsilon, outputs, errors)
            middle = time.perf_counter()
            losses.append(solve_lp_grid(labels, prior, epsilon, outputs, errors).loss / before - 1)
            times[0].append(middle - start)
            times[1].append(time.perf_counter() - middle)
        cells = [f"{median(t):.2f} ({min(t):.2f}–{max(t):.2f})" for t in times]
        factor = median(times[0]) / median(times[1])
        print(
            f"| {name} | {size} | {epsilon:g} | {cells[0]} | {cells[1]} | {factor:.1f} | "
            f"{max(map(abs, losses)):.0e} |",
            flush=True,
        )


def frontier():
    """Loss and root-mean-square bias along the penalty, on the claim counts at ε = 0.5."""
    labels, prior = np.arange(float(len(CLAIMS))), np.array(CLAIMS) / sum(CLAIMS)
    print("\nBias budget: claim counts (95 % zeros, labels 0–16), ε = 0.5\n")
    print("| budget | noisy label loss | rms bias | largest bias | gap |")
    print("|---|---:|---:|---:|---:|")
    budgets = [("unbiased", BiasBudget())]
    budgets += [(f"max {most:g}", BiasBudget(most=most)) for most in (0.5, 1, 2)]
    budgets += [(f"penalty 1e{e}", BiasBudget(penalty=10.0**e)) for e in (8, 6, 4, 2, 0)]
    budgets += [("penalty 0 (RR-on-Bins)", BiasBudget(penalty=0.0))]
    points = []
    for name, budget in budgets:
        found = solve_optimal_unbiased(labels, prior, 0.5, bias=budget)
        bias = found.means - labels
        rms = math.sqrt(float(prior @ bias**2))
        if budget.penalty is not None:
            points.append((rms, found.loss))
        print(
            f"| {name} | {found.loss:.5g} | {rms:.3g} | {np.abs(bias).max():.3g} | "
            f"{found.gap:.1e} |"
        )
    return points


def equal_rows(k=101, epsilon=4.0, most=20.0):
    """The certified gap where many labels have equal rows: a large bias is allowed."""
    rng, y = np.random.default_rng(1), np.arange(float(k))
    every = {
        "1/(1 + y)^1.5": (1.0 + y) ** -1.5,
        "exponential noise": rng.exponential(size=k),
        "lognormal noise": np.exp(2 * rng.standard_normal(k)),
        "0.9^y": 0.9**y + 1e-9,
        "two bumps": smooth_priors(k)["two bumps"] + 1e-6,
    }
    print(f"\nCertified gap: {k} labels, ε = {epsilon:g}, a bias of at most {most:g}\n")
    print("| prior | gap | seconds of the processor |\n|---|---:|---:|")
    for name, prior in every.items():
        start, budget = time.process_time(), BiasBudget(most=most)
        gap = solve_optimal_unbiased(y, prior, epsilon, bias=budget).gap
        print(f"| {name} | {gap:.1e} | {time.process_time() - start:.1f} |", flush=True)


def draw(path, grid_points, bias_points):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.loglog(*zip(*grid_points, strict=True), "o-")
    left.set(
        title="Algorithm 1 on a grid (k = 52, ε = 1)",
        xlabel="outputs of the grid",
        ylabel="loss above the exact optimum (relative)",
    )
    edge = min(bias for bias, _ in bias_points if bias > 0) / 3  # where the unbiased end is drawn
    right.semilogx([max(bias, edge) for bias, _ in bias_points], [y for _, y in bias_points], "o-")
    right.set(
        title="The price of unbiasedness (claim counts, ε = 0.5)",
        xlabel="root-mean-square bias",
        ylabel="noisy label loss",
    )
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[52, 401])
    parser.add_argument("--real", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--equal-rows", action="store_true")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, help="of --many")
    parser.add_argument("--priors", nargs="+", choices=smooth_priors(10), help="of --many")
    arguments = parser.parse_args()
    if arguments.many:
        many(arguments.epsilons, arguments.priors)
        return
    if arguments.equal_rows:
        equal_rows()
        return
    if arguments.programs:
        programs()
        return
    print("| prior | k | ε | seconds | loss | gap | outputs |")
    print("|---|---:|---:|---|---:|---:|---:|")
    for k in arguments.sizes:
        epsilons = EPSILONS if k <= 1001 else (1.0,)
        for name, prior in priors(k).items():
            row(name, prior, epsilons, RUNS.get(k, 1))
    real = {}
    for name, file, column, k in REAL if arguments.real else ():
        values = pq.read_table(arguments.real / file, columns=[column])[column].to_numpy()
        real[name] = np.bincount(values.astype(int), minlength=k).astype(float)
        row(name, real[name], EPSILONS, 5)
    grid_points = against_grids("uniform", np.ones(52), 1.0, GRIDS)
    if real:
        against_grids("weeks worked", real["weeks worked"], 1.0, GRIDS)
    programs()
    bias_points = frontier()
    equal_rows()
    if arguments.plot:
        draw(arguments.plot, grid_points, bias_points)


if __name__ == "__main__":
    main()
