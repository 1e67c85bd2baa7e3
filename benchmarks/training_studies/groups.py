"""Test MSE on labels privatized with a prior for every public group, against one prior for all.

    LABELDP_DATA=folder python benchmarks/training.py groups weeks
    python benchmarks/training.py groups --show

``weeks``: weeks worked in a year (0 … 52) by class of worker and age band [18, 25, 55, 65], a
sample of the training rows (``--rows``), splines. ``house``: median house value in ten thousands
(0 … 50) by 40 k-means clusters of place and income, random Fourier features. Both by the closed
form of ``labeldp train`` with ``privatized`` and the artifact: it debiases, the labels of a group
by its own table. Priors are private, and spend a part of the same ε (``split: auto``).

``split: auto`` gives a group its own table only where it has enough rows, so that the number of
tables is shown; what the true histograms of all groups would give, with all of ε for the label,
stands in brackets (no promise covers those).

A draw is an artifact of its own (noise of the priors) and private labels of its own. Every draw is
a line of ``--results``, and is not run again; ``--show`` runs nothing. Randomized response makes
the same table of every prior: there is nothing to compare, and it is there once.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_trainer import parse_config, train
from labeldp_trainer.methods.published.clusters import k_means
from training_studies.listed import listed
from training_studies.tables import TASKS, prepare

from labeldp_compile import compile_spec
from labeldp_compile.errors import InputError

RESULTS = Path(__file__).parent.parent / "results" / "training_groups.jsonl"
PRIVATE = "{kind: private, data: train.parquet}"
PUBLIC = "{kind: public, data: train.parquet}"
UNBIASED = "{{kind: optimal_unbiased, bias: {{sample_size: {}}}}}"
MECHANISMS = {
    "rr_on_bins": "{kind: rr_on_bins}",
    "optimal_unbiased, sample_size 30": UNBIASED.format(30),
    "optimal_unbiased, sample_size 100": UNBIASED.format(100),
    "optimal_unbiased, sample_size 1000": UNBIASED.format(1000),
    "optimal_unbiased": "{kind: optimal_unbiased}",
    "rr_with_prior": "{kind: rr_with_prior}",
    "rr_top_k, k: 5": "{kind: rr_top_k, k: 5}",
    "randomized_response": "{kind: randomized_response}",
    "debiased_rr": "{kind: debiased_rr}",
}
ALIKE = ("randomized_response", "debiased_rr")  # for every prior
NONE, POOLED, GROUPED, TRUE = "no privacy", "pooled", "by group", "true priors"
CLUSTERS = 40
GROUPS = {
    "weeks": "{columns: [{column: class_of_worker, values: [%s]}, "
    "{column: age, bands: [18, 25, 55, 65]}]}",
    "house": "{column: cluster, values: [%s]}",
}
REPRESENTATION = {
    "weeks": "{kind: splines}",
    "house": "{kind: random_fourier, features: 512, components: all}",
}
TITLES = {
    "weeks": "weeks worked by class of worker and age",
    "house": "house value in $10,000 by 40 clusters of place and income",
}
SPEC = """
version: 1
name: artifact
label: {{column: {label}, domain: {{kind: integer, min: 0, max: {high}}}}}
loss: squared
goal: labels
privacy: {{epsilon: {epsilon}}}
prior: {prior}
mechanism: {mechanism}
{groups}
"""
CONFIG = """
version: 1
name: groups
data:
  kind: table
  train: train.parquet
  test: test.parquet
  label: {label}
  numeric: [{numeric}]
  categorical: [{categorical}]
loss: squared
representation: {representation}
method: {method}
"""


class Runs:
    """The runs of one task, in a folder of its own."""

    def __init__(self, name, directory, options):
        """Write the data of the task, with the column of clusters."""
        self.name, self.directory, self.task = name, directory, TASKS[name]
        columns = prepare(self.task, options.data, directory, options.rows)
        self.numeric, self.categorical, self.rows = columns
        values = _clustered(directory) if name == "house" else _values(directory)
        self.groups = f"groups: {GROUPS[name] % ', '.join(values)}"
        self.count = 0

    def one(self, mechanism, way, epsilon):
        """What one draw gives: test MSE, own tables of groups, seconds of compiling and fitting."""
        method, began, compiled, tables = "{kind: none}", time.monotonic(), time.monotonic(), None
        if mechanism != NONE:
            path = self.directory / "spec.yaml"
            text = SPEC.format(
                label=self.task.label,
                high=self.task.high,
                epsilon=epsilon,
                prior=_prior(mechanism, way),
                mechanism=MECHANISMS[mechanism],
                groups="" if way == POOLED else self.groups,
            )
            path.write_text(text, encoding="utf-8")
            try:
                artifact = compile_spec(path)
            except InputError as error:
                return {"mse": None, "refused": str(error)}
            artifact.write(self.directory, overwrite=True)
            if way != POOLED:
                tables = artifact.artifact.groups.own_tables
            method, compiled = "{kind: privatized, artifact: artifact.onnx}", time.monotonic()
        text = CONFIG.format(
            label=self.task.label,
            numeric=", ".join(self.numeric),
            categorical=", ".join(self.categorical),
            representation=REPRESENTATION[self.name],
            method=method,
        )
        self.count += 1
        output = self.directory / f"run{self.count}"
        result = train(parse_config(text, "config", self.directory), output)
        seconds = round(compiled - began, 1), round(time.monotonic() - compiled, 1)
        return {"mse": float(f"{result.metrics['test_mse']:.6g}"), "tables": tables,
                "seconds": seconds}  # fmt: skip


def _prior(mechanism, way):
    if mechanism in ALIKE:
        return "{kind: uniform}"
    return PUBLIC if way == TRUE else PRIVATE


def _values(directory):
    """The classes of worker, as the spec lists them."""
    column = pq.read_table(directory / "train.parquet")["class_of_worker"]
    return [json.dumps(value) for value in sorted(set(column.drop_null().to_pylist()))]


def _clustered(directory):
    """Adds the column ``cluster`` of the training rows; its values."""
    path = directory / "train.parquet"
    table = pq.read_table(path)
    names = ("longitude", "latitude", "median_income")
    points = np.stack([table[name].to_numpy() for name in names], axis=1).astype(float)
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    cluster = k_means(points, CLUSTERS, seed=0)
    pq.write_table(table.append_column("cluster", pa.array(cluster)), path)
    return [str(value) for value in range(CLUSTERS)]


def cells(options):
    """What is run, in an order in which a draw of everything comes before the next."""
    for draw in range(options.draws):
        if not draw:
            yield NONE, NONE, "-", draw
        for epsilon in options.epsilons:
            for mechanism in options.mechanisms:
                ways = (POOLED,) if mechanism in ALIKE else (POOLED, GROUPED, TRUE)
                yield from ((mechanism, way, epsilon, draw) for way in ways)


def measure(name, options, lines):
    """Add a line for every draw that is missing."""
    done = {(line["task"], *line["cell"]) for line in lines}
    missing = [cell for cell in cells(options) if (name, *cell) not in done]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(name, Path(folder), options)
        for cell in missing:
            line = {"task": name, "cell": cell, "rows": runs.rows, **runs.one(*cell[:3])}
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            lines.append(line)
            print(f"  {line}", file=sys.stderr, flush=True)


def show(name, options, lines):
    """A markdown table: pooled → by group, its tables; in brackets by group of true priors."""
    found, tables, rows = {}, {}, 0
    for line in lines:
        if line["task"] == name:
            mechanism, way, epsilon, _ = line["cell"]
            found.setdefault((mechanism, way, epsilon), []).append(line["mse"])
            tables[mechanism, way, epsilon] = line.get("tables")
            rows = line["rows"]
    if not found:
        return
    most = max(map(len, found.values()))
    failed = sum(values.count(None) for values in found.values())
    print(f"\n{TITLES[name]}, {rows:,} rows, mean ± sd over {most} draws; not compiled: {failed}\n")
    print("| mechanism | " + " | ".join(f"ε = {e}" for e in options.epsilons) + " |")
    print("|---" * (1 + len(options.epsilons)) + "|")
    for mechanism in options.mechanisms:
        row = []
        for epsilon in options.epsilons:
            pooled, grouped, true = (
                found.get((mechanism, way, epsilon)) for way in (POOLED, GROUPED, TRUE)
            )
            text = "–" if pooled is None else _cell(pooled)
            if grouped is not None:
                text += f" → {_cell(grouped)}, {tables[mechanism, GROUPED, epsilon]} tables"
            row.append(text if true is None else f"{text} ({_cell(true)})")
        print(f"| {mechanism} | " + " | ".join(row) + " |")
    plain = found.get((NONE, NONE, "-"))
    if plain:
        print(f"| {NONE} |" + f" {plain[0]:.4g} |" * len(options.epsilons))


def _cell(values):
    values = [value for value in values if value is not None]
    if not values:
        return "not compiled"
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{mean(values):.4g}{spread}"


def main(arguments):
    """Run what is missing, and show all."""
    parser = argparse.ArgumentParser(prog="training.py groups", description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(GROUPS)}; default: all")
    parser.add_argument("--epsilons", type=lambda text: text.split(","), default="0.5,1,2,4")
    parser.add_argument("--mechanisms", type=listed(MECHANISMS), default=list(MECHANISMS))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000, help="of weeks worked")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    unknown = set(options.tasks) - set(GROUPS)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {', '.join(GROUPS)}")
    lines = []
    if options.results.exists():
        text = options.results.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
    if options.data is None and not options.show:
        print("benchmarks/training.py: LABELDP_DATA names no folder: showing what is there")
    for name in options.tasks or GROUPS:
        if options.data is not None and not options.show:
            measure(name, options, lines)
        show(name, options, lines)
