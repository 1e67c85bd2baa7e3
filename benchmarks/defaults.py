"""From a table to a model with nothing but defaults: what does it learn? As a markdown table.

    LABELDP_DATA=folder python benchmarks/defaults.py --seeds 3

For each table ``labeldp init TABLE --column C --range LO..HI --yes`` (or ``--values``), then
``compile`` and ``randomize``, at ε = 1, as commands. On the private labels a ridge regression, or
for classes a multinomial logistic regression by the likelihood of the private labels; both choose
their strength by the private labels alone. Compared with what needs no features: the mean of the
private labels (squared error), or the classes' estimated shares (log loss). Test labels are true.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.opening import open_artifact
from shared.tables import ADULT, CENSUS, DIGITS, HOUSING, VISITS, RealTable, split_rows

from tests.fixtures.learners import Ridge, softmax_predictions


@dataclass(frozen=True)
class Told:
    """A table, and all that ``init`` needs to know of its label; at most ``rows`` for training."""

    table: RealTable
    options: tuple[str, ...]
    rows: int | None = None


TABLES = {
    "weeks worked in a year": Told(CENSUS, ("--range", "0..52"), 50_000),
    "hours per week": Told(ADULT, ("--range", "0..100")),
    "median house value": Told(HOUSING, ("--range", "0..500000")),
    "doctor visits": Told(VISITS, ("--range", "0..20")),
    "digit": Told(
        DIGITS, ("--kind", "categorical", "--values", "0,1,2,3,4,5,6,7,8,9", "--default", "0")
    ),
}


def labeldp(folder, *arguments):
    """One command, in the folder."""
    command = [sys.executable, "-m", "labeldp_compile.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")


def privatized(told, whole, train, epsilon):
    """The private labels of the training rows, and the artifact."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        label = told.table.label
        pq.write_table(whole.select([label]).take(train), folder / "train.parquet")
        options = ("--column", label, *told.options, "--epsilon", epsilon, "--yes")
        labeldp(folder, "init", "train.parquet", "-o", "spec.yaml", *options)
        labeldp(folder, "compile", "spec.yaml", "-o", "build", "--quiet")
        (artifact,) = (folder / "build").glob("*.onnx")
        labeldp(folder, "randomize", artifact, "train.parquet", "-o", "private.parquet", "--quiet")
        private = pq.read_table(folder / "private.parquet")[label].to_numpy()
        return private, open_artifact(artifact).table(0)


def study(told, data, epsilon, seed):
    """(loss of the constant, of the model on private labels, of the model without privacy)."""
    whole, trainable = told.table.read(data)
    generator = np.random.default_rng(seed)
    train, test = split_rows(whole.num_rows, trainable, generator, told.rows)
    features, labels = told.table.features(whole), whole[told.table.label].to_numpy()
    private, decoded = privatized(told, whole, train, epsilon)
    if decoded.certificate.utility.loss == "zero_one":
        return _classes(features, labels, train, test, private, decoded)
    ridge, truth = Ridge(features[train], features[test]), labels[test]

    def error(predicted):
        return float(((predicted - truth) ** 2).mean())

    exact = error(ridge.predict(labels[train].astype(float)))
    return error(private.mean()), error(ridge.predict(private)), exact


def _classes(features, labels, train, test, private, decoded):
    values = list(decoded.domain.values)
    places = {value: i for i, value in enumerate(values)}
    exact, truth = (
        np.array([places[value] for value in labels[rows].tolist()]) for rows in (train, test)
    )
    given = {value: o for o, value in enumerate(decoded.randomizer.values)}
    outputs = np.array([given[value] for value in private.tolist()])
    table = matrix(decoded.randomizer, range(len(values)))

    def loss(*fitted):
        logs = softmax_predictions(*fitted)
        return float(-logs[np.arange(len(truth)), truth].mean())

    x, unseen = features[train].astype(float), features[test].astype(float)
    return (
        loss(x[:, :1], outputs, table, unseen[:, :1]),
        loss(x, outputs, table, unseen),
        loss(x, exact, np.eye(len(values)), unseen),
    )


def main():
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--only", help="tables whose name holds this")
    options = parser.parse_args()
    data = Path(os.environ["LABELDP_DATA"])
    print("| label | loss | constant | private labels | no privacy | better than the constant |")
    print("|---|---|---:|---:|---:|---:|")
    for name, told in TABLES.items():
        if options.only and options.only not in name:
            continue
        found = np.array([study(told, data, options.epsilon, s) for s in range(options.seeds)])
        gain = 1 - found[:, 1] / found[:, 0]
        cells = " | ".join(f"{value:.4g}" for value in found.mean(axis=0))
        loss = "log loss" if told.options[0] == "--kind" else "squared error"
        least = f"{gain.mean():.1%} (least {gain.min():.1%})"
        print(f"| {name} | {loss} | {cells} | {least} |", flush=True)


if __name__ == "__main__":
    main()
