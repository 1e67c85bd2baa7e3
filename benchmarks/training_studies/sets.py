"""Test accuracy on private labels that are sets of classes, against other labels, over ε.

    LABELDP_DATA=folder python benchmarks/training.py sets
    python benchmarks/training.py sets jobs --show

``fashion-mnist`` and ``mnist``: ten classes, patches. ``jobs``: what somebody works as, and which
education they have, as one label of many classes, for the rows of the census of those who work, on
splines of all other columns but the finer codes of the same. In all of these a linear model on the
same representation: private labels in closed form, with no setting to choose; LP-MST, ALIBI and
sets with forward correction by steps (``--epochs``, ``--batch``), each at the best of its learning
rates for the first seed, a choice made on test labels that favours them. ``network``: corrections
of the loss of a perceptron on the pixels of Fashion-MNIST, all at one learning rate that was not
chosen.

Every seed has a representation, and every run draws private labels of its own. A finished run is a
line of ``--results``, and is not run again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from labeldp_trainer import parse_config, train
from shared.tables import CENSUS
from training_studies.features import PART

from labeldp_compile import compile_spec

RESULTS = Path(__file__).parents[1] / "results" / "training_sets.jsonl"
NONE, SETS, RESPONSE = "no privacy", "sets", "randomized response"
KINDS = {SETS: "subset_selection", RESPONSE: "randomized_response"}
PRIVATIZED = "{kind: privatized, artifact: artifact.onnx%s}"
RATES = (0.1, 0.5, 2.0, 8.0)
EPSILONS = {"jobs": ("1", "2", "4"), "network": ("0.5", "1")}
SPEC = """
version: 1
name: artifact
label: {{column: label, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: zero_one
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: {mechanism}}}
"""
CONFIG = """
version: 1
name: sets
data: {data}
loss: cross_entropy
method: {method}
"""
STEPS = """
model: {model}
optimizer: {{kind: {optimizer}, learning_rate: {rate}, schedule: cosine}}
training: {{epochs: {epochs}, batch_size: {batch}, seed: {seed}, checkpoint_every: 1000}}
"""
EDUCATION, OCCUPATION = "education", "major_occupation_code"
NOBODY = "Not in universe"
LEFT_OUT = (*CENSUS.left_out, CENSUS.label, EDUCATION, OCCUPATION, "detailed_occupation_code")


@dataclass(frozen=True)
class Way:
    """A method of a config, with {epsilon}; what randomizes for it; its learning rates."""

    method: str
    mechanism: str | None = None
    rates: tuple[float, ...] = ()


LINEAR = {
    NONE: Way("{kind: none}"),
    SETS: Way(PRIVATIZED % "", KINDS[SETS]),
    RESPONSE: Way(PRIVATIZED % "", KINDS[RESPONSE]),
    "sets, forward, by steps": Way(PRIVATIZED % ", correction: forward", KINDS[SETS], RATES),
    "LP-MST, two stages": Way(
        "{kind: lp_mst, epsilon: %s, stages: 2, fractions: [0.4, 0.6]}", None, RATES
    ),
    "ALIBI": Way("{kind: alibi, epsilon: %s}", None, RATES),
}
NETWORK = {
    f"{name}, {correction}": Way(PRIVATIZED % f", correction: {correction}", kind, (1e-3,))
    for name, kind in KINDS.items()
    for correction in ("forward", "backward", "none")
}
TASKS = ("fashion-mnist", "mnist", "jobs", "network")


def ways(task):
    """What is compared."""
    return NETWORK if task == "network" else LINEAR


class Runs:
    """The runs of one task, in a folder of its own."""

    def __init__(self, task, directory, options):
        """Write the data, if they are a table's."""
        self.task, self.directory, self.options = task, directory, options
        self.classes, self.count = 10, 0
        folder = options.data.absolute() / ("mnist" if task == "mnist" else "fashion-mnist")
        train_part, test_part = (PART.format(folder, part) for part in ("train", "t10k"))
        self.data = f"{{kind: idx, train: {train_part}, test: {test_part}, classes: 10}}"
        self.representation = "{{kind: patches, seed: {seed}}}"
        if task == "jobs":
            self.data, self.classes = write_jobs(options.data, directory, options.rows)
            self.representation = "{{kind: splines, components: 200, seed: {seed}}}"

    def one(self, way, epsilon, rate, seed):
        """The test accuracy of one run in percent, and its seconds."""
        if way.mechanism is not None:
            spec = self.directory / "spec.yaml"
            text = SPEC.format(last=self.classes - 1, epsilon=epsilon, mechanism=way.mechanism)
            spec.write_text(text, encoding="utf-8")
            compile_spec(spec).write(self.directory, overwrite=True)
        method = way.method % epsilon if "%" in way.method else way.method
        text = CONFIG.format(data=self.data, method=method)
        if self.task != "network":
            text += f"representation: {self.representation.format(seed=seed)}\n"
        if rate is not None:
            text += STEPS.format(**self._steps(), rate=rate, seed=seed)
        self.count += 1
        began = time.monotonic()
        output = self.directory / "runs" / str(self.count)
        result = train(parse_config(text, "config", self.directory), output)
        seconds = round(time.monotonic() - began, 1)
        accuracy = round(100 * float(result.metrics["test_accuracy"]), 2)
        return {"accuracy": accuracy, "seconds": seconds, "classes": self.classes}

    def _steps(self):
        if self.task == "network":
            model = "{kind: mlp, hidden: [256, 128]}"
            return {"model": model, "optimizer": "adam", "epochs": 6, "batch": 256}
        options = self.options
        linear = {"model": "{kind: linear}", "optimizer": "sgd"}
        return {**linear, "epochs": options.epochs, "batch": options.batch}


def write_jobs(data, directory, rows):
    """The part ``data`` of a config for the joint label, and its number of classes.

    The lists of occupations and of educations are public.
    """
    tables = [pq.read_table(data / name) for name in CENSUS.files]
    tables = [table.filter(pc.not_equal(table[OCCUPATION], NOBODY)) for table in tables]
    values = {
        name: sorted(set().union(*(table[name].unique().to_pylist() for table in tables)))
        for name in (OCCUPATION, EDUCATION)
    }
    chosen = np.random.default_rng(0).permutation(tables[0].num_rows)[:rows]
    tables[0] = tables[0].take(pa.array(np.sort(chosen)))
    for table, name in zip(tables, ("train", "test"), strict=True):
        places = [
            np.searchsorted(
                values[column], table[column].to_numpy(zero_copy_only=False).astype(str)
            )
            for column in (OCCUPATION, EDUCATION)
        ]
        label = pa.array(places[0] * len(values[EDUCATION]) + places[1])
        kept = table.drop_columns(list(LEFT_OUT)).append_column("label", label)
        pq.write_table(kept, directory / f"{name}.parquet")
    schema = pq.read_schema(directory / "train.parquet")
    names = [name for name in schema.names if name != "label"]
    numeric = [
        n for n in names if n not in CENSUS.codes and pa.types.is_integer(schema.field(n).type)
    ]
    categorical = [name for name in names if name not in numeric]
    classes = len(values[OCCUPATION]) * len(values[EDUCATION])
    part = (
        "{kind: table, train: train.parquet, test: test.parquet, label: label, "
        f"numeric: [{', '.join(numeric)}], categorical: [{', '.join(categorical)}], "
        f"classes: {classes}}}"
    )
    return part, classes


class Study:
    """Lines of runs that are there, and the means to add more."""

    def __init__(self, task, options, lines, directory):
        """``lines`` is added to."""
        self.task, self.options, self.lines = task, options, lines
        self.runs = None if directory is None else Runs(task, directory, options)

    def accuracies(self, name, epsilon):
        """One a seed, at the best learning rate of the first."""
        way, seeds = ways(self.task)[name], range(self.options.seeds)
        epsilon = None if name == NONE else epsilon
        rates = way.rates or (None,)
        if len(rates) > 1:
            first = {rate: self._line(name, epsilon, rate, 0) for rate in rates}
            rates = (max(rates, key=lambda rate: first[rate] or 0),)
        found = [self._line(name, epsilon, rates[0], seed) for seed in seeds]
        return [accuracy for accuracy in found if accuracy is not None]

    def _line(self, name, epsilon, rate, seed):
        cell = [self.task, name, epsilon, rate, seed]
        for line in self.lines:
            if line["cell"] == cell:
                return line["accuracy"]
        if self.runs is None:
            return None
        line = {"cell": cell, **self.runs.one(ways(self.task)[name], epsilon, rate, seed)}
        with self.options.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.lines.append(line)
        print(f"  {line}", file=sys.stderr, flush=True)
        return line["accuracy"]

    def show(self):
        """A markdown table of what is there, the best of each column in bold."""
        epsilons = self.options.epsilons or EPSILONS.get(self.task, ("0.5", "1", "2"))
        table = {name: [self.accuracies(name, e) for e in epsilons] for name in ways(self.task)}
        means = [
            max((mean(row[i]) for name, row in table.items() if row[i] and name != NONE), default=0)
            for i in range(len(epsilons))
        ]
        print(
            f"\n{self.task}: test accuracy in percent, mean ± sd over {self.options.seeds} seeds\n"
        )
        print("| method | " + " | ".join(f"ε = {e}" for e in epsilons) + " |")
        print("|---" + "|---:" * len(epsilons) + "|")
        for name, row in table.items():
            cells = [_cell(values, best) for values, best in zip(row, means, strict=True)]
            print(f"| {name} | " + " | ".join(cells) + " |")


def _cell(values, best):
    if not values:
        return "–"
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    text = f"{mean(values):.2f}"
    return f"**{text}**{spread}" if mean(values) == best else text + spread


def main(given):
    """Run what is missing, and show all."""
    parser = argparse.ArgumentParser(prog="training.py sets", description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; default: all")
    parser.add_argument("--epsilons", type=lambda text: text.split(","))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=100_000, help="of jobs, at most")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args(given)
    unknown = set(options.tasks) - set(TASKS)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {', '.join(TASKS)}")
    lines = []
    if options.results.exists():
        text = options.results.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
    for task in options.tasks or TASKS:
        if options.show or options.data is None:
            Study(task, options, lines, None).show()
            continue
        with tempfile.TemporaryDirectory() as folder:
            Study(task, options, lines, Path(folder)).show()
