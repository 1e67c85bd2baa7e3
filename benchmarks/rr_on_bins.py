"""How long the exact RR-on-Bins solver takes: prints a Markdown table of medians.

The prior is a noisy histogram over the labels 0..k−1, like a private estimate of one: two bumps and
a tail, 20 people a label on average, noise of scale 2, whole and not negative.

``--proofs`` times the proof that a solution is the best instead, on problems that need linear
programs.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

import numpy as np

from labeldp_compile.solve.rr_on_bins import dual_of_rr_on_bins, solve_rr_on_bins

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


def proofs(repeat: int) -> None:
    """Seconds of a whole proof, and how far it is from the loss."""
    print("uniform prior; seconds: median (least–most); gap of the proof\n")
    print("| k | loss | ε | seconds | gap |")
    print("|---:|---|---:|---|---:|")
    for size, loss, epsilon in PROOFS:
        labels, prior = np.arange(size, dtype=np.float64), np.full(size, 1.0 / size)
        solution = solve_rr_on_bins(labels, prior, epsilon, loss)
        times = []
        for _ in range(repeat):
            begin = perf_counter()
            alpha = dual_of_rr_on_bins(labels, prior, epsilon, loss, solution)
            times.append(perf_counter() - begin)
        gap = max(1.0 - alpha.sum() / solution.loss, 0.0)
        spread = f"{median(times):.2f} ({min(times):.2f}–{max(times):.2f})"
        print(f"| {size} | {loss} | {epsilon:g} | {spread} | {gap:.0e} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--power", type=float, help="the prior is (1 + y)^-POWER instead")
    parser.add_argument("--proofs", action="store_true")
    arguments = parser.parse_args()
    if arguments.proofs:
        proofs(arguments.repeat)
        return
    columns = " | ".join(f"ε = {epsilon:g}" for epsilon in arguments.epsilons)
    print(f"milliseconds: median (least–most) of {arguments.repeat} runs; number of bins\n")
    print(f"| k | loss | {columns} |")
    print("|---:|---|" + "---|" * len(arguments.epsilons))
    for size in arguments.sizes:
        labels, prior = np.arange(size, dtype=np.float64), histogram(size)
        if arguments.power is not None:
            prior = (1.0 + labels) ** -arguments.power
        for loss in arguments.losses:
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
