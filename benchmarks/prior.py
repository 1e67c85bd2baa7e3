"""What the projection of the noisy histogram is worth: the loss under the true labels.

For RR-on-Bins with the squared loss on the quickstart data, with ε₁ = √(k/n): the noisy label loss
of the resulting randomizer under the *true* histogram, when the noisy counts are clipped at zero,
and when they are projected onto the public number of rows. Mean of 40 draws of the noise, with the
standard deviation of the mean. Prints a markdown table.
"""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from labeldp_compile.prior.priors import project_to_total
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins

DATA = Path(__file__).parents[1] / "specs" / "data" / "randhie.parquet"
LABELS, DRAWS = 78, 40


def true_loss(solution, labels, prior, epsilon):
    bins = np.searchsorted(solution.starts, np.arange(len(labels)), side="right") - 1
    matrix = np.ones((len(labels), len(solution.values)))
    matrix[np.arange(len(labels)), bins] = math.exp(epsilon)
    matrix /= matrix.sum(axis=1, keepdims=True)
    errors = 0.5 * (solution.values[None, :] - labels[:, None]) ** 2
    return float((prior[:, None] * matrix * errors).sum())


def main():
    visits = pq.read_table(DATA, columns=["mdvis"])["mdvis"].to_numpy()
    counts = np.bincount(visits, minlength=LABELS)
    rows, labels = int(counts.sum()), np.arange(float(LABELS))
    generator = np.random.default_rng(0)
    print("| ε | best with the true histogram | clipped at zero | projected |")
    print("|---|---|---|---|")
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        first = math.sqrt(LABELS / rows)
        best = solve_rr_on_bins(labels, counts / rows, epsilon, "squared").loss
        losses = {"clipped": [], "projected": []}
        for _ in range(DRAWS):
            one, two = generator.geometric(-math.expm1(-first / 2), size=(2, LABELS))
            noisy = [int(c) for c in counts + one - two]
            estimates = {
                "clipped": np.maximum(noisy, 0),
                "projected": np.array(project_to_total(noisy, rows), dtype=float),
            }
            for name, weights in estimates.items():
                prior = weights / weights.sum()
                solution = solve_rr_on_bins(labels, prior, epsilon - first, "squared")
                losses[name].append(true_loss(solution, labels, counts / rows, epsilon - first))
        cells = [
            f"{np.mean(values):.3f} ± {np.std(values) / math.sqrt(DRAWS):.3f}"
            for values in losses.values()
        ]
        print(f"| {epsilon:g} | {best:.3f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
