"""Test loss of models trained on privatized labels, over ε, as a markdown table.

    LABELDP_DATA=folder python benchmarks/training.py tables weeks --rows 50000 --seeds 3
    LABELDP_DATA=folder python benchmarks/training.py tables weeks --rows 50000 --closed-form

The tasks: ``weeks`` (weeks_worked_in_year, census_kdd_train/test.parquet) and ``hours``
(hours_per_week, adult_train/test.parquet) with the squared loss, ``visits`` (mdvis,
randhie.parquet, four fifths of its rows for training) with the Poisson loss, ``house``
(median_house_value in ten thousands, california_housing.parquet, without the column that has nulls)
with the squared one. Mechanisms that need a prior spend part of ε on it (``split: auto``). Labels
are randomized afresh for every seed, but a cell has one artifact: the spread leaves out the draw of
its prior. Of the learning rates given, each cell shows the one with the least mean test loss, as in
Appendix G.1 of Optimal unbiased randomizers: with several rates, that is a choice made on test
labels.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from labeldp_trainer import TrainerError, parse_config, train
from shared.tables import ADULT, CENSUS, HOUSING, VISITS
from training_studies.listed import listed

from labeldp_compile import compile_spec
from labeldp_compile.errors import InputError

MECHANISMS = {
    "rr_with_prior": ("{kind: rr_with_prior}", "{kind: private, data: train.parquet}"),
    "rr_on_bins": ("{kind: rr_on_bins}", "{kind: private, data: train.parquet}"),
    "randomized_response": ("{kind: randomized_response}", "{kind: uniform}"),
    "debiased_rr (unbiased)": ("{kind: debiased_rr}", "{kind: uniform}"),
    "exponential": ("{kind: exponential}", "{kind: uniform}"),
    "staircase, clipped": ("{kind: staircase, clip: true}", "{kind: uniform}"),
    "staircase (unbiased)": ("{kind: staircase}", "{kind: uniform}"),
    "laplace, clipped": ("{kind: laplace, clip: true}", "{kind: uniform}"),
    "laplace (unbiased)": ("{kind: laplace}", "{kind: uniform}"),
    "optimal_unbiased": ("{kind: optimal_unbiased}", "{kind: private, data: train.parquet}"),
}

SPEC = """
version: 1
name: {name}
label: {{column: {label}, domain: {{kind: integer, min: {low}, max: {high}}}}}
loss: squared
privacy: {{epsilon: {epsilon}}}
prior: {prior}
mechanism: {mechanism}
"""

CONFIG = """
version: 1
name: benchmark
data:
  kind: table
  train: train.parquet
  test: test.parquet
  label: {label}
  numeric: [{numeric}]
  categorical: [{categorical}]
loss: {loss}
method: {method}
"""

CLOSED_FORM = "representation: {{kind: splines}}\n"
NETWORK = """
model: {{kind: mlp, hidden: [128, 64], embedding: 8, scale: {scale}, offset: {offset}}}
optimizer: {{kind: rmsprop, learning_rate: {rate}, schedule: cosine, l2: 0.0001}}
training:
  {{epochs: {epochs}, batch_size: {batch}, seed: {seed}, checkpoint_every: 1000,
   early_stopping: {{}}}}
"""


@dataclass(frozen=True)
class Task:
    """A data set: its files, its label, and what is trained on it."""

    files: tuple[str, ...]
    label: str
    low: int
    high: int
    loss: str
    left_out: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()  # numbers that are categories
    unit: int = 1  # of the label

    @property
    def metric(self):
        """What the table shows."""
        return "test_loss" if self.loss == "poisson" else "test_mse"


TASKS = {
    "weeks": Task(CENSUS.files, CENSUS.label, 0, 52, "squared", CENSUS.left_out, CENSUS.codes),
    "hours": Task(ADULT.files, ADULT.label, 1, 99, "squared", ADULT.left_out),
    "visits": Task(VISITS.files, VISITS.label, 0, 77, "poisson"),
    "house": Task(HOUSING.files, HOUSING.label, 1, 50, "squared", ("total_bedrooms",), unit=10_000),
}


def prepare(task, data, directory, rows):
    """Write train.parquet and test.parquet; the feature columns by kind."""
    tables = [_in_units(pq.read_table(data / name), task) for name in task.files]
    if len(tables) == 1:
        order = np.random.default_rng(0).permutation(tables[0].num_rows)
        cut = len(order) * 4 // 5
        tables = [tables[0].take(pa.array(part)) for part in (order[:cut], order[cut:])]
    elif rows is not None and rows < tables[0].num_rows:
        chosen = np.random.default_rng(0).choice(tables[0].num_rows, rows, replace=False)
        tables[0] = tables[0].take(pa.array(np.sort(chosen)))
    for table, name in zip(tables, ("train", "test"), strict=True):
        pq.write_table(table.drop_columns(list(task.left_out)), directory / f"{name}.parquet")
    schema = tables[0].schema
    features = [n for n in schema.names if n not in (task.label, *task.left_out)]
    numeric = [
        n
        for n in features
        if n not in task.codes
        and (
            pa.types.is_integer(schema.field(n).type) or pa.types.is_floating(schema.field(n).type)
        )
        and not pc.any(pc.is_null(tables[0][n])).as_py()
    ]
    return numeric, [n for n in features if n not in numeric], tables[0].num_rows


def _in_units(table, task):
    """Whole numbers of the task's unit."""
    if task.unit == 1:
        return table
    values = np.rint(table[task.label].to_numpy() / task.unit).astype(np.int64)
    place = table.schema.get_field_index(task.label)
    return table.set_column(place, task.label, pa.array(values))


class Runs:
    """Trainings on one task; each leaves its run folder in a temporary directory."""

    def __init__(self, task, directory, arguments):
        """Write the data of the task."""
        self.task, self.directory, self.arguments = task, directory, arguments
        self.numeric, self.categorical, self.rows = prepare(
            task, arguments.data, directory, arguments.rows
        )
        self.count = 0

    def losses(self, method):
        """The test losses over the seeds, for the best learning rate; and which rate that is."""
        found = []
        for rate in [None] if self.arguments.closed_form else self.arguments.rates:
            losses = [self.one(method, rate, seed) for seed in range(self.arguments.seeds)]
            found.append((mean(losses), losses, rate))
        return min(found)

    def one(self, method, rate, seed):
        """The test loss of one run; infinite if it diverged."""
        task, squared = self.task, self.task.loss == "squared"
        model = CLOSED_FORM if self.arguments.closed_form else NETWORK
        text = (CONFIG + model).format(
            label=task.label,
            numeric=", ".join(self.numeric),
            categorical=", ".join(self.categorical),
            scale=(task.high - task.low) / 2 if squared else 1,
            offset=(task.high + task.low) / 2 if squared else 0,
            loss=task.loss,
            method=method,
            rate=rate,
            epochs=self.arguments.epochs,
            batch=self.arguments.batch,
            seed=seed,
        )
        self.count += 1
        output = self.directory / f"run{self.count}"
        try:
            result = train(parse_config(text, "config", self.directory), output)
        except TrainerError as error:
            print(f"  {error}", file=sys.stderr)
            return float("inf")
        return result.metrics[task.metric]

    def artifact(self, name, epsilon):
        """Compile a mechanism for the task into artifact.onnx; whether it tells labels apart."""
        mechanism, prior = MECHANISMS[name]
        path = self.directory / "spec.yaml"
        path.write_text(
            SPEC.format(
                name="artifact",
                label=self.task.label,
                low=self.task.low,
                high=self.task.high,
                epsilon=epsilon,
                prior=prior,
                mechanism=mechanism,
            ),
            encoding="utf-8",
        )
        try:
            compile_spec(path).write(self.directory, overwrite=True)
        except InputError as error:
            print(f"  {error}", file=sys.stderr)
            return False
        return True


def cell(found, best):
    center, losses, rate = found
    if center == math.inf:
        return "refused, or diverged"
    spread = f" ± {stdev(losses):.3g}" if len(losses) > 1 else ""
    number = f"{center:.4g}"
    tried = "" if rate is None else f" ({rate:g})"
    return f"{f'**{number}**' if found is best else number}{spread}{tried}"


def compare(name, arguments):
    task = TASKS[name]
    with tempfile.TemporaryDirectory() as folder:
        runs, began = Runs(task, Path(folder), arguments), time.monotonic()
        baseline = runs.losses("{kind: none}")
        columns = []
        for epsilon in arguments.epsilons:
            column = {}
            for mechanism in arguments.mechanisms:
                if not runs.artifact(mechanism, epsilon):
                    column[mechanism] = (math.inf, [math.inf], None)
                    continue
                column[mechanism] = runs.losses("{kind: privatized, artifact: artifact.onnx}")
                line = f"  ε = {epsilon} {mechanism}: {cell(column[mechanism], None)}"
                print(line, file=sys.stderr, flush=True)
            columns.append(column)
        metric = "Poisson loss" if task.loss == "poisson" else "MSE"
        device = jax.devices()[0].device_kind
        how = f" (learning rate); {arguments.epochs} epochs, batch {arguments.batch}"
        if arguments.closed_form:
            how = "; closed form on splines"
        print(
            f"{task.label}: test {metric}, mean ± sd over {arguments.seeds} seeds{how}; "
            f"{runs.rows:,} rows, {device}, {time.monotonic() - began:.0f} s\n"
        )
        print("| mechanism | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
        print("|---" + "|---:" * len(columns) + "|")
        for mechanism in arguments.mechanisms:
            cells = [cell(c[mechanism], min(c.values())) for c in columns]
            print(f"| {mechanism} | " + " | ".join(cells) + " |")
        print("| none (no privacy) | " + " | ".join([cell(baseline, None)] * len(columns)) + " |\n")


def main(given=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="training.py tables", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; default: all")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--rows", type=int, help="train on a random subset of N rows")
    parser.add_argument("--mechanisms", type=listed(MECHANISMS), default=list(MECHANISMS))
    parser.add_argument("--epsilons", type=numbers, default=["0.5", "1", "2", "4", "8"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", type=lambda t: [float(x) for x in numbers(t)], default=[1e-3])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument(
        "--closed-form", action="store_true", help="a linear model on splines, not a network"
    )
    arguments = parser.parse_args(given)
    unknown = set(arguments.tasks) - set(TASKS)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {', '.join(TASKS)}")
    if arguments.data is None:
        parser.error("say --data, or set LABELDP_DATA")
    with tempfile.TemporaryDirectory() as compiled:
        jax.config.update("jax_compilation_cache_dir", compiled)
        for name in arguments.tasks or TASKS:
            compare(name, arguments)


def numbers(text):
    return text.split(",")
