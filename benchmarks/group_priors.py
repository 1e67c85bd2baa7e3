"""What private priors by public group are worth: the loss under the true labels of each group.

    LABELDP_DATA=folder python benchmarks/group_priors.py --results results.jsonl
    python benchmarks/group_priors.py --show

For a label and public columns: the noisy label loss, computed exactly from the compiled
probabilities, of a pooled private prior (``split: auto``), of private priors by group at the same
total ε (``prior/plan.py``), and of the true priors of all groups with all of ε on the label.
Only the noise of the priors is drawn, the pooled one the same in both. Some groups are random: they
tell nothing, and may cost at most 2 % in the mean. ``goal: labels`` takes RR-on-Bins, or for
categories RRWithPrior; ``goal: training`` takes unbiased randomizers.

Finished lines are kept in the results file and not run again; ``--show`` runs nothing.
"""

import argparse
import json
import math
import os
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from shared.prior_loss import Study, label_losses

from labeldp_compile.prior.discrete_laplace import NoisyHistogram, seeded_histogram
from labeldp_compile.prior.plan import level_counts, plan_of, plan_tables
from labeldp_compile.prior.priors import table_weights, weights_of

RESULTS = Path(__file__).parent / "results" / "group_priors.jsonl"
CENSUS, ADULT = "census_kdd_train.parquet", "adult_train.parquet"
HOUSING, VISITS = "california_housing.parquet", "randhie.parquet"
WEEKS = (CENSUS, "weeks_worked_in_year", 0, 52, 1)
HOURS = (ADULT, "hours_per_week", 1, 99, 1)
HOUSES = (HOUSING, "median_house_value", 0, 50, 10_000)
SEEN = (VISITS, "mdvis", 0, 77, 1)
SCHOOL = (CENSUS, "education")
INCOMES = (2, 2.5, 3, 3.5, 4, 5, 6)
# The label, and columns: with bands, or values, or a number of groups that are drawn.
SETS = {
    "weeks worked by class of worker": (WEEKS, ["class_of_worker"]),
    "weeks worked by class of worker, age": (
        WEEKS,
        ["class_of_worker", ("age", (18, 25, 55, 65))],
    ),
    "hours a week by occupation, age": (HOURS, ["occupation", ("age", (25, 55, 65))]),
    "hours a week by relationship, class": (HOURS, ["relationship", "workclass"]),
    "house value by place, income": (HOUSES, ["ocean_proximity", ("median_income", INCOMES)]),
    "doctor visits by chronic diseases": (SEEN, [("disea", (6, 10, 14, 20))]),
    "doctor visits by coinsurance, health": (SEEN, ["lncoins", "hlthg"]),
    "education by age, occupation": (
        SCHOOL,
        [("age", (10, 15, 18, 25, 35, 55)), "major_occupation_code"],
    ),
    "weeks worked, 44 random groups": (WEEKS, [44]),
    "hours a week, 40 random groups": (HOURS, [40]),
    "house value, 10 random groups": (HOUSES, [10]),
    "doctor visits, 10 random groups": (SEEN, [10]),
    "education, 60 random groups": (SCHOOL, [60]),
    "two bumps, 10,000 random groups of 20": (None, [10_000]),
}
GIVEN = "0.1"  # ε₁ where it is given
FEW = 200  # tables that unbiased randomizers are solved for


def load(data, name):
    """Counts [C + 1, k] of labels by cell, the shape, and whether they are categories."""
    label, columns = SETS[name]
    if label is None:
        y, k = two_bumps(200_000), 100
    elif len(label) == 2:
        y, k = _coded(pq.read_table(data / label[0])[label[1]])
    else:
        file, column, low, high, unit = label
        y = np.rint(pq.read_table(data / file)[column].to_numpy() / unit).clip(low, high) - low
        y, k = y.astype(int), high - low + 1
    cell, shape = np.zeros(len(y), dtype=int), []
    for column in columns:
        codes, size = _codes(None if label is None else data / label[0], column, len(y))
        cell, shape = cell * size + codes, [*shape, size]
    counts = np.zeros((math.prod(shape) + 1, k), dtype=np.int64)
    np.add.at(counts, (cell, y), 1)
    return counts, shape, label is not None and len(label) == 2


def two_bumps(rows):
    """Labels 0 … 99."""
    generator = np.random.default_rng(0)
    means = np.where(generator.random(rows) < 0.6, 25, 70)
    return np.rint(generator.normal(means, 8)).clip(0, 99).astype(int)


def _codes(path, column, rows):
    if isinstance(column, int):
        return np.random.default_rng(1).permutation(rows) % column, column
    if isinstance(column, str):
        return _coded(pq.read_table(path)[column])
    name, bands = column
    found = np.searchsorted(bands, pq.read_table(path)[name].to_numpy(), side="right")
    return found, len(bands) + 1


def _coded(column):
    """Nulls are a value of their own."""
    codes = column.combine_chunks().dictionary_encode()
    missing = len(codes.dictionary)
    return codes.indices.fill_null(missing).to_numpy().astype(int), missing + bool(codes.null_count)


def measure(data, name, goal, epsilon, split, draws):
    """One line: the losses of all draws."""
    counts, shape, categories = load(data, name)
    rows, k = int(counts.sum()), counts.shape[1]
    study = Study(counts.sum(axis=0), goal, epsilon, categories)
    spec = study.spec("auto")
    use = spec.named_mechanism.prior_use
    given = split
    if split != "auto":
        given = Fraction(split), Fraction(epsilon) - Fraction(split)
    pooled = plan_of(use, k, Fraction(epsilon), rows, given)
    sizes = counts.sum(axis=1).tolist()
    plan = plan_tables(use, k, Fraction(epsilon), sizes, shape, given)
    by_table = plan.by_table(counts)
    everything, tables = level_counts(plan, plan.by_table(counts))
    alone, grouped = [], []
    for seed in range(draws):
        if pooled.is_uniform:
            alone.append(study.loss_under(spec, [1] * k, pooled.epsilon_label))
            grouped.append(alone[-1])
            continue
        cells = study.counts if pooled.pooled_cells is None else everything
        noisy = seeded_histogram(cells, pooled.epsilon_prior, seed)
        weights = weights_of(noisy, rows, k, shrunk=pooled.shrunk)
        alone.append(study.loss_under(spec, weights, pooled.epsilon_label))
        first = seeded_histogram(everything, plan.epsilon_pooled, seed)
        second = NoisyHistogram([], 0.0)
        if plan.tables:
            second = seeded_histogram(tables, plan.epsilon_tables, 10_000 + seed)
        found = table_weights(plan, first, second, by_table.sum(axis=1).tolist(), rows, k)
        grouped.append(_loss(spec, found, plan.epsilon_label, by_table))
    limit = None
    filled = counts[counts.sum(axis=1) > 0]
    if goal == "labels" or len(filled) <= FEW:
        limit = _loss(spec, filled.tolist(), Fraction(epsilon), filled)
    return {
        "set": name, "mechanism": spec.named_mechanism.kind, "goal": goal, "epsilon": epsilon,
        "split": split, "rows": rows, "labels": k, "groups": len(filled), "tables": plan.tables,
        "cells": plan.group_cells, "epsilon_pooled": float(plan.epsilon_pooled),
        "epsilon_tables": float(plan.epsilon_tables), "true": _short(limit),
        "pooled": [_short(loss) for loss in alone], "grouped": [_short(loss) for loss in grouped],
    }  # fmt: skip


def _loss(spec, weights, epsilon, counts):
    """The mean over all rows, of tables [T] and counts [T, k]; equal tables are solved once."""
    solved, total = {}, 0.0
    for table, true in zip(weights, counts, strict=True):
        if not true.any():
            continue
        key = tuple(table)
        if key not in solved:
            solved[key] = label_losses(spec, table, epsilon)
        total += float(true @ solved[key])
    return total / counts.sum()


def _short(loss):
    return None if loss is None else float(f"{loss:.6g}")


def show(lines):
    """Markdown tables, and the worst of all."""
    for goal in dict.fromkeys(line["goal"] for line in lines):
        print(f"\n`goal: {goal}`\n")
        print("| label by groups | ε | groups | tables, cells | ε₁ | pooled | by group | "
              "true priors | by group over pooled | draws |")  # fmt: skip
        print("|---|---:|---:|---|---|---:|---:|---:|---:|---:|")
        worst = -math.inf
        for line in (line for line in lines if line["goal"] == goal):
            pooled, grouped = np.mean(line["pooled"]), np.mean(line["grouped"])
            worst = max(worst, grouped / pooled - 1)
            name = line["set"] + ("" if line["split"] == "auto" else f", ε₁ = {line['split']}")
            cells = line["cells"] or line["labels"]
            tables = f"{line['tables']}, {cells}" if line["tables"] else "pooled"
            limit = "–" if line["true"] is None else f"{line['true']:.4g}"
            print(
                f"| {name} | {line['epsilon']} | {line['groups']:,} | {tables} | "
                f"{line['epsilon_pooled']:g} + {line['epsilon_tables']:g} | {pooled:.4g} | "
                f"{grouped:.4g} ± {np.std(line['grouped']):.2g} | {limit} | "
                f"{grouped / pooled - 1:+.1%} | {len(line['pooled'])} |"
            )
        print(f"\nWorst: {worst:+.1%}. Mean ± standard deviation of the draws.")


def main():
    """Run what is missing, and show all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilons", default="0.5,1,2,4")
    parser.add_argument("--goals", default="labels,training")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sets", default="", help="only those whose name has this in it")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    lines = []
    if options.results.exists():
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(line["set"], line["goal"], line["epsilon"], line["split"]) for line in lines}
    data = os.environ.get("LABELDP_DATA")
    if data is None and not options.show:
        print("benchmarks/group_priors.py: LABELDP_DATA names no folder: showing what is there")
    for goal in options.goals.split(",") if data is not None and not options.show else []:
        for name in SETS:
            if options.sets not in name:
                continue
            if goal == "training" and SETS[name][0] == SCHOOL:
                continue  # randomized response: no ε is spent on a prior
            splits = ("auto", GIVEN) if goal == "labels" else ("auto",)
            for epsilon, split in ((e, s) for e in options.epsilons.split(",") for s in splits):
                if (name, goal, epsilon, split) in done or (split == GIVEN and epsilon != "1"):
                    continue
                line = measure(Path(data), name, goal, epsilon, split, options.draws)
                options.results.parent.mkdir(parents=True, exist_ok=True)
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                lines.append(line)
                print(f"  {name}, {goal}, ε = {epsilon}, {split}", file=sys.stderr, flush=True)
    show(lines)


if __name__ == "__main__":
    main()
