"""One release on public features over ε, beside private labels and no privacy, as markdown tables.

    LABELDP_DATA=folder python benchmarks/training.py features fashion-mnist weeks --seeds 5

The tasks: ``fashion-mnist`` and ``mnist`` (test accuracy in percent; patches), ``weeks``, ``hours``
and ``visits`` as in the study ``tables`` (test MSE; splines). A seed draws a representation and a
release of its own. No setting is chosen here: the table is of the defaults. Seconds are those of
all trainings of a seed, representations included; memory is the largest of the process.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev

from labeldp_trainer import parse_config, train
from training_studies.tables import TASKS, prepare

from labeldp_compile.pipeline import compile_spec

IMAGES = ("fashion-mnist", "mnist")
DELTA = "1e-5"
PART = "{{images: {0}/{1}-images-idx3-ubyte.gz, labels: {0}/{1}-labels-idx1-ubyte.gz}}"
SPEC = """
version: 1
name: artifact
label: {{column: {label}, domain: {domain}}}
loss: {loss}
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {mechanism}
"""


class Images:
    """An idx data set of ten classes."""

    loss, metric, unit, better = "cross_entropy", "accuracy", 100, max

    def __init__(self, folder):
        """Files in the format of MNIST."""
        train_part, test_part = (PART.format(folder, part) for part in ("train", "t10k"))
        self.data = f"{{kind: idx, train: {train_part}, test: {test_part}, classes: 10}}"
        self.release = f"delta: {DELTA}"
        self.kind = "patches"
        self.spec = {
            "label": "label",
            "domain": "{kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}",
            "loss": "zero_one",
            "mechanism": "{kind: randomized_response}",
        }


class Table:
    """A regression on a table."""

    metric, unit, better = "mse", 1, min

    def __init__(self, task, data, directory, rows):
        """Writes train.parquet and test.parquet."""
        numeric, categorical, _ = prepare(task, data, directory, rows)
        self.loss, self.kind = task.loss, "splines"
        self.data = (
            f"{{kind: table, train: train.parquet, test: test.parquet, label: {task.label}, "
            f"numeric: [{', '.join(numeric)}], categorical: [{', '.join(categorical)}]}}"
        )
        self.release = f"delta: {DELTA}, label_range: [{task.low}, {task.high}]"
        self.spec = {
            "label": task.label,
            "domain": f"{{kind: integer, min: {task.low}, max: {task.high}}}",
            "loss": "squared",
            "mechanism": "{kind: optimal_unbiased}",
        }


def study(name, arguments):
    """The table of one task."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        if name in IMAGES:
            task = Images(arguments.data.absolute() / name)
        else:
            task = Table(TASKS[name], arguments.data, directory, arguments.rows)
        methods = {"no privacy": {None: "{kind: none}"}, "one release": {}, "private labels": {}}
        for epsilon in arguments.epsilons:
            release = f"{{kind: one_release, epsilon: {epsilon}, {task.release}}}"
            methods["one release"][epsilon] = release
            path = directory / f"{epsilon}.yaml"
            path.write_text(SPEC.format(epsilon=epsilon, **task.spec), encoding="utf-8")
            compile_spec(path).write(directory / epsilon)
            method = f"{{kind: privatized, artifact: {epsilon}/artifact.onnx}}"
            methods["private labels"][epsilon] = method
        found, count = {}, 0
        for seed in range(arguments.seeds):
            for method, cells in methods.items():
                for epsilon, text in cells.items():
                    count += 1
                    classes = task.data
                    if method == "private labels":
                        classes = classes.replace(", classes: 10", "")
                    config = (
                        f"version: 1\nname: run\ndata: {classes}\nloss: {task.loss}\n"
                        f"representation: {{kind: {task.kind}, seed: {seed}}}\nmethod: {text}\n"
                    )
                    output = directory / "runs" / f"{count}"
                    result = train(parse_config(config, "config", directory), output)
                    value = task.unit * result.metrics[f"test_{task.metric}"]
                    found.setdefault((method, epsilon), []).append(value)
                    print(f"  seed {seed}, {method}, ε = {epsilon}: {value:.4g}", flush=True)
    seconds = (time.monotonic() - began) / arguments.seeds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\n{name}: test {task.metric}, mean ± sd over {arguments.seeds} seeds, δ = {DELTA} of "
        f"one release; {seconds:.0f} s a seed, {memory:.1f} GiB\n"
    )
    print("| method | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
    print("|---" + "|---:" * len(arguments.epsilons) + "|")
    for method, cells in methods.items():
        row = [cell(found[method, None if None in cells else e]) for e in arguments.epsilons]
        print(f"| {method} | " + " | ".join(row) + " |")


def cell(values):
    """Mean and spread."""
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{mean(values):.4g}{spread}"


def main(given=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="training.py features", description=__doc__.split("\n", maxsplit=1)[0]
    )
    known = (*IMAGES, *TASKS)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--rows", type=int, help="of tables: a random subset of so many rows")
    parser.add_argument(
        "--epsilons", type=lambda text: text.split(","), default=["0.1", "0.2", "0.5", "1", "2"]
    )
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args(given)
    unknown = set(arguments.tasks) - set(known)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {', '.join(known)}")
    if arguments.data is None:
        parser.error("say --data, or set LABELDP_DATA")
    arguments.data = Path(arguments.data)
    for name in arguments.tasks or known:
        study(name, arguments)
