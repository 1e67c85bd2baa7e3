"""Which randomizer for training: unbiased, a bias budget, or the least loss? As markdown tables.

    LABELDP_DATA=folder python benchmarks/goal.py --seeds 3

A ridge regression on one-hot categories and standardised numbers, in closed form, with the strength
that generalised cross-validation finds on the private labels; its mean squared error on true labels
of other rows. Each seed draws the rows, the noise of the prior (``split: auto``) and the private
labels. Shown are means over seeds and, in brackets, the difference to unbiased on the same seeds
with its standard error. A ``sample_size`` is a number, or found from the number of rows.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from labeldp_verify.analysis.probabilities import matrix
from shared.prior_loss import noisy_weights
from shared.tables import ADULT, CENSUS, HOUSING, VISITS, RealTable, split_rows

from labeldp_compile.mechanisms.mechanism import Problem
from labeldp_compile.prior.plan import plan_prior
from labeldp_compile.spec import parse_spec
from tests.fixtures.learners import Ridge

BUDGETED = "{{kind: optimal_unbiased, bias: {{sample_size: {}}}}}"
SIZES = {  # of a sample, from the number of rows
    "n": lambda rows: rows,
    "n/10": lambda rows: rows // 10,
    "10,000": lambda rows: 10_000,
    "1,000": lambda rows: 1000,
    "100": lambda rows: 100,
}
MECHANISMS = {
    "unbiased": lambda rows: "{kind: optimal_unbiased}",
    **{
        f"sample_size {name}": lambda rows, size=size: BUDGETED.format(size(rows))
        for name, size in SIZES.items()
    },
    "rr_on_bins": lambda rows: "{kind: rr_on_bins}",
}
SPEC = """
version: 1
name: goal
label: {{column: y, domain: {{kind: integer, min: {low}, max: {high}}}}}
loss: squared
privacy: {{epsilon: {epsilon}}}
prior: {{kind: private, data: labels.parquet}}
mechanism: {mechanism}
"""


@dataclass(frozen=True)
class Task:
    """A table whose label is divided by ``unit`` and rounded; at most ``rows`` for training."""

    table: RealTable
    low: int
    high: int
    unit: int = 1
    rows: int | None = None


TASKS = {
    "weeks worked": Task(CENSUS, 0, 52, rows=50_000),
    "hours a week": Task(ADULT, 1, 99),
    "house value, $5,000": Task(HOUSING, 0, 100, unit=5000),
    "doctor visits": Task(VISITS, 0, 77),
}


def load(task, data):
    """Features [n, p] and labels [n] of all rows, and how many of them may be trained on."""
    whole, trainable = task.table.read(data)
    labels = np.rint(whole[task.table.label].to_numpy() / task.unit).clip(task.low, task.high)
    return task.table.features(whole), labels.astype(int), trainable


def private_labels(task, labels, epsilon, mechanism, seed):
    """Labels through a mechanism, its prior from their noisy histogram."""
    k = task.high - task.low + 1
    counts = np.bincount(labels - task.low, minlength=k)
    spec = parse_spec(
        SPEC.format(low=task.low, high=task.high, epsilon=epsilon, mechanism=mechanism)
    )
    plan = plan_prior(spec, [len(labels)])
    weights = noisy_weights(counts, plan, seed)
    problem = Problem(spec.domain, weights, plan.epsilon_label, "squared")
    randomizer = spec.named_mechanism.build(problem).randomizer
    sums = np.cumsum(matrix(randomizer, range(k)), axis=1)
    words = np.random.default_rng([seed, 7]).random(len(labels))
    outputs = np.empty(len(labels))
    for y in range(k):
        rows = labels == y + task.low
        outputs[rows] = np.array(randomizer.values)[
            np.searchsorted(sums[y, :-1], words[rows], side="right")
        ]
    return outputs


def study(name, task, data, epsilons, seeds):
    """Rows of the table."""
    features, labels, trainable = load(task, data)
    errors = {}
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        train, test = split_rows(len(labels), trainable, generator, task.rows)
        ridge, truth = Ridge(features[train], features[test]), labels[test]

        def error(predicted, truth=truth):
            return float(((predicted - truth) ** 2).mean())

        exact = error(ridge.predict(labels[train].astype(float)))
        constant = error(np.full(len(test), labels[train].mean()))
        for epsilon in epsilons:
            for title, mechanism in MECHANISMS.items():
                private = private_labels(task, labels[train], epsilon, mechanism(len(train)), seed)
                errors.setdefault((epsilon, title), []).append(error(ridge.predict(private)))
            errors.setdefault((epsilon, "no privacy"), []).append(exact)
            errors.setdefault((epsilon, "the mean"), []).append(constant)
    for epsilon in epsilons:
        unbiased = np.array(errors[epsilon, "unbiased"])
        cells = []
        for title in (*MECHANISMS, "no privacy", "the mean"):
            values = np.array(errors[epsilon, title])
            cell = f"{values.mean():.4g}"
            if title in MECHANISMS and title != "unbiased":
                gain = values - unbiased
                cell += f" ({gain.mean():+.2g} ± {gain.std(ddof=1) / len(gain) ** 0.5:.1g})"
            cells.append(cell)
        print(f"| {name} | {len(train):,} | {epsilon} | {' | '.join(cells)} |", flush=True)


def main():
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", default="0.5,1,2")
    options = parser.parse_args()
    data = os.environ.get("LABELDP_DATA")
    if data is None:
        print("benchmarks/goal.py: LABELDP_DATA names no folder")
        return
    print(f"| label | rows | ε | {' | '.join(MECHANISMS)} | no privacy | the mean |")
    print("|---|---:|---:|" + "---:|" * (len(MECHANISMS) + 2))
    for name, task in TASKS.items():
        study(name, task, Path(data), options.epsilons.split(","), options.seeds)


if __name__ == "__main__":
    main()
