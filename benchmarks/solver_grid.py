"""What the solvers prove on random priors: gap and seconds of whole compiles, as markdown.

    python benchmarks/solver_grid.py --cases 48       # a sample, the same in every run
    python benchmarks/solver_grid.py --priors 200     # all cases: days
    PYTHONPATH=OTHER_CHECKOUT python benchmarks/solver_grid.py --cases 48   # before a change

The grid: seeded priors of 20 to 1,000 labels × six ε × what is asked for: RR-on-Bins, and unbiased
outputs without and with bias budgets. *Gap* is that of the certificate, as the verifier proves it;
one compile with its checks takes these seconds of processor time. A case that takes longer than
``--limit`` seconds is stopped, and misses every aim.
"""

import argparse
import itertools
import multiprocessing
import resource

import numpy as np

from tests.fixtures.specs import compile_anew, spec

EPSILONS = (0.1, 0.5, 1, 2, 4, 8)
SHARES = (0.01, 0.05, 0.2)  # of the labels' range, as the largest bias
PENALTIES = (0, 0.1, 1, 100)
BIAS = [*(("max", share) for share in SHARES), *(("penalty", price) for price in PENALTIES)]
ASKED = [("rr_on_bins", "squared"), ("rr_on_bins", "absolute"), ("unbiased", None), *BIAS]
TOTAL = 10**9  # weights are whole
SEED = 62


def prior_of(number):
    """Name and whole weights [k] of a random prior."""
    rng = np.random.default_rng([SEED, number])
    k = int(np.exp(rng.uniform(np.log(20), np.log(1000))))
    y, name = np.arange(k), ("dirichlet", "sparse", "zipf", "bumps", "geometric")[number % 5]
    places = rng.uniform(0, k, 2)
    density = {
        "dirichlet": lambda: rng.gamma(rng.choice([0.3, 1.0, 10.0]), size=k),
        "sparse": lambda: rng.exponential(size=k) * (rng.random(k) < 0.25) + 1e-12,
        "zipf": lambda: (1.0 + y) ** -rng.uniform(0.5, 2.5),
        "bumps": lambda: sum(np.exp(-(((y - at) / k / 0.08) ** 2)) for at in places) + 1e-6,
        "geometric": lambda: np.exp(-rng.uniform(1, 30) * y / k),
    }[name]()
    return f"{name} {number}", np.rint(TOTAL * density / density.sum()).astype(int).tolist()


def text_of(weights, asked, epsilon):
    """The spec of a case."""
    kind, amount = asked
    if kind == "rr_on_bins":
        return spec(weights=weights, epsilon=epsilon, loss=amount, mechanism=kind)
    if kind == "unbiased":
        return spec(weights=weights, epsilon=epsilon, mechanism="optimal_unbiased")
    amount = round(amount * len(weights), 3) if kind == "max" else amount
    mechanism = f"{{kind: optimal_unbiased, bias: {{{kind}: {amount}}}}}"
    return spec(weights=weights, epsilon=epsilon, mechanism=mechanism)


def measure(text, end):
    """Send gap and processor seconds of a compile; start-up is not part of it."""
    start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    gap = compile_anew(text).certificate.utility.certified_gap
    end.send((gap, sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - start))


def measured(text, limit):
    """Gap and seconds of a case, each in a process of its own; infinite if it does not end."""
    here, there = multiprocessing.Pipe(False)
    process = multiprocessing.get_context("fork").Process(target=measure, args=(text, there))
    process.start()
    there.close()
    try:
        gap, seconds = here.recv() if here.poll(limit) else (None, np.inf)
    except EOFError:  # the compile failed, and said why
        gap, seconds = None, np.inf
    process.terminate()
    process.join()
    return np.inf if gap is None else gap, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--priors", type=int, default=200)
    parser.add_argument("--cases", type=int, help="that many of the grid, chosen by a fixed seed")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a case, by the clock")
    given = parser.parse_args()
    grid = list(itertools.product(range(given.priors), ASKED, EPSILONS))
    if given.cases is not None:
        chosen = np.random.default_rng(SEED).permutation(len(grid))[: given.cases]
        grid = [grid[i] for i in sorted(chosen)]
    print("| prior | labels | asked for | ε | gap | seconds |\n|---|---:|---|---:|---:|---:|")
    results = []
    for number, asked, epsilon in grid:
        name, weights = prior_of(number)
        gap, seconds = measured(text_of(weights, asked, epsilon), given.limit)
        results.append((max(gap, 0.0), seconds))
        words = " ".join(str(part) for part in asked if part is not None)
        cells = f"{len(weights)} | {words} | {epsilon} | {gap:.1e} | {seconds:.1f}"
        print(f"| {name} | {cells} |", flush=True)
    gaps, times = np.array(results).T
    for gap, seconds in ((1e-3, 60), (1e-4, 20)):
        met = np.mean((gaps <= gap) & (times <= seconds))
        print(f"\nwithin {gap:g} in under {seconds} s: {100 * met:.1f}% of {len(grid):,} cases")


if __name__ == "__main__":
    main()
