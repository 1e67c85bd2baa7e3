"""What ``split: auto`` is worth: the loss under the true labels, as markdown tables.

    LABELDP_DATA=folder python benchmarks/split.py --epsilons 0.5,1,2
    python benchmarks/split.py --landscape

Real tables cut to their first 300, 1,000 and 10,000 rows of a random order, and all rows; for both
goals what ``mechanism: {kind: auto}`` takes. The noisy label loss under the true labels of those
rows is computed exactly from the randomizer's probabilities; only the noise of the prior is drawn,
20 times. *over the better* is the loss of ``auto`` relative to the better of a uniform prior and
√(k/n) (``split: paper``, where it leaves something for the label). ``--landscape`` prints the same
for distributions made by formulas, relative to the true prior and all of ε, for shares of ε and
numbers of cells, too. The numbers in ``mechanisms/prior_use.py`` were set by hand on both.
"""

import argparse
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from shared.prior_loss import Study

from labeldp_compile.errors import BudgetError
from labeldp_compile.prior.plan import PriorPlan

ROWS = (300, 1000, 10_000, None)
TABLES = {
    "weeks worked": ("census_kdd_train.parquet", "weeks_worked_in_year", 0, 52, 1),
    "hours a week": ("adult_train.parquet", "hours_per_week", 1, 99, 1),
    "house value, $5,000": ("california_housing.parquet", "median_house_value", 0, 100, 5000),
    "doctor visits": ("randhie.parquet", "mdvis", 0, 77, 1),
}
CATEGORIES = {
    "digit": ("digits.parquet", "target"),
    "education": ("census_kdd_train.parquet", "education"),
    "marital status": ("census_kdd_train.parquet", "marital_stat"),
}
SHARES = ("0.003", "0.01", "0.03", "0.1", "0.3")


def load(data):
    """(name, labels from 0 on [n], number of labels, whether they are categories)."""
    for name, (file, column, low, high, unit) in TABLES.items():
        labels = np.rint(pq.read_table(data / file)[column].to_numpy() / unit)
        yield name, (labels.clip(low, high) - low).astype(int), high - low + 1, False
    for name, (file, column) in CATEGORIES.items():
        codes = pq.read_table(data / file)[column].combine_chunks().dictionary_encode()
        yield name, codes.indices.to_numpy(), len(codes.dictionary), True


def compare(name, study, draws):
    """One row of the table, and how much worse than the better of the two."""
    uniform = study.mean_loss(study.uniform(), draws)
    try:
        paper = study.plan("paper")
    except BudgetError:
        paper = None
    losses = [uniform] + ([] if paper is None else [study.mean_loss(paper, draws)])
    plan = study.plan("auto")
    auto = study.mean_loss(plan, draws)
    worse = auto / min(losses) - 1
    cells = len(study.counts) if plan.pooled_cells is None else plan.pooled_cells
    chosen = "uniform" if plan.is_uniform else f"{float(plan.epsilon_prior):g}, {cells}"
    other = "–" if paper is None else f"{losses[1]:.4g}"
    print(
        f"| {name} | {study.counts.sum():,} | {study.epsilon} | {uniform:.4g} | {other} | "
        f"{auto:.4g} | {chosen} | {worse:+.1%} |",
        flush=True,
    )
    return worse


def tables(data, epsilons, draws, goals):
    """The study on real labels."""
    every = list(load(data))
    for goal in goals:
        print(f"\n`goal: {goal}`\n")
        print("| label | rows | ε | uniform | √(k/n) | auto | its ε₁, cells | over the better |")
        print("|---|---:|---:|---:|---:|---:|---|---:|")
        found = []
        for name, labels, k, categories in every:
            if categories and goal == "training":
                continue  # randomized response: no ε is spent on a prior
            order = np.random.default_rng(0).permutation(len(labels))
            for epsilon in epsilons:
                for rows in ROWS:
                    if rows is not None and rows >= len(labels):
                        continue
                    counts = np.bincount(labels[order[:rows]], minlength=k)
                    study = Study(counts, goal, epsilon, categories)
                    found.append(compare(name, study, draws))
        print(
            f"\nWorst: {max(found):+.1%}; {sum(w > 0.05 for w in found)} of {len(found)} above 5 %"
        )


def landscape(epsilons, draws, goals):
    """Loss relative to the true prior's for shares of ε and cells, on distributions by formulas."""
    k = 64
    y = np.arange(k)
    shapes = {
        "flat": np.ones(k),
        "geometric": 0.8**y,
        "spiked": 1 + 60.0 * (y == 0) + 40.0 * (y == k - 1),
        "two bumps": np.exp(-(((y - 15) / 4) ** 2)) + 0.5 * np.exp(-(((y - 45) / 8) ** 2)),
    }
    print(f"| goal | shape | rows | ε | uniform | auto | cells | {' | '.join(SHARES)} |")
    print("|---|---|---:|---:|---:|---:|---:|" + "---:|" * len(SHARES))
    for goal in goals:
        for name, shape in shapes.items():
            for rows in (300, 3000, 30_000):
                exact = shape / shape.sum() * rows
                counts = np.floor(exact).astype(int)
                counts[np.argsort(counts - exact)[: rows - counts.sum()]] += 1
                for epsilon in epsilons:
                    study = Study(counts, goal, epsilon)
                    spec = study.spec("auto")
                    least = study.loss_under(spec, counts.tolist(), Fraction(epsilon))
                    uniform = study.loss(study.uniform()) / least
                    auto = study.mean_loss(study.plan("auto"), draws) / least
                    for cells in (4, 8, 16, k):
                        plans = [_plan(epsilon, share, cells, k) for share in SHARES]
                        losses = [study.mean_loss(plan, draws) / least for plan in plans]
                        print(
                            f"| {goal} | {name} | {rows:,} | {epsilon} | {uniform:.3f} | "
                            f"{auto:.3f} | {cells} | "
                            f"{' | '.join(f'{loss:.3f}' for loss in losses)} |",
                            flush=True,
                        )


def _plan(epsilon, share, cells, k):
    prior = Fraction(epsilon) * Fraction(share)
    plan = PriorPlan(prior, Fraction(epsilon) - prior, cells, shrunk=True)
    return replace(plan, cells=None) if cells == k else plan


def main():
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--goals", default="training,labels")
    parser.add_argument("--landscape", action="store_true")
    options = parser.parse_args()
    epsilons, goals = options.epsilons.split(","), options.goals.split(",")
    data = os.environ.get("LABELDP_DATA")
    if options.landscape:
        landscape(epsilons, options.draws, goals)
    elif data is None:
        print("benchmarks/split.py: LABELDP_DATA names no folder: --landscape needs none")
    else:
        tables(Path(data), epsilons, options.draws, goals)


if __name__ == "__main__":
    main()
