"""Methods on public features over ε, as markdown tables and a picture.

    LABELDP_DATA=folder python benchmarks/training.py features fashion-mnist weeks --seeds 5

The tasks: ``fashion-mnist`` and ``mnist`` (test accuracy in percent; patches), ``weeks``,
``hours``, ``visits`` and ``house`` (test MSE; splines). Every run is the command ``labeldp train``
in a process of its own. A seed draws a representation, and each run draws noise or private labels
of its own. Of ``one release``, ``PATE`` (classes), ``private labels`` and ``no privacy`` no setting
is chosen: the table is of the defaults. The others train a linear model on the same representation
(``--epochs``, ``--batch``), each at the best of its learning rates for the first seed, a choice
made on test labels.

Every finished run is a line of ``--results``, and is not run again: interrupt and go on at will.
``--show`` runs nothing, and shows what is there with the number of seeds.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median, stdev

import matplotlib.pyplot as plt
from training_studies.hardware import hardware
from training_studies.images import METHODS as TRAINED
from training_studies.listed import listed
from training_studies.published import ACCOUNTING, PUBLISHED, SOURCE
from training_studies.tables import TASKS, prepare

from labeldp_compile import compile_spec

TITLES = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST"}
IMAGES = tuple(TITLES)
DELTA = "1e-5"
RELEASE, PATE, PRIVATE, NONE = "one release", "PATE", "private labels", "no privacy"
GRADIENTS = (
    "DP-SGD",
    "label-free clipping",
    "LabelDP-Pro, self_conv",
    "LabelDP-Pro, alt_conv, λ = 0.75",
    "LP-2ST",
    "ALIBI",
)
QUIET = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
CENTRAL_RATES, LABEL_RATES = (0.5, 2.0, 8.0), (0.1, 0.5, 2.0)
COLOURS = {
    RELEASE: "#1f77b4",
    PATE: "#e377c2",
    NONE: "grey",
    PRIVATE: "#ff7f0e",
    "DP-SGD": "#2ca02c",
    "label-free clipping": "#17becf",
    "LabelDP-Pro": "#d62728",
    "LP-2ST": "#9467bd",
    "ALIBI": "#8c564b",
}
EPSILONS = {True: ["0.1", "0.2", "0.5", "1", "2"], False: ["0.1", "0.2", "0.5", "1", "2", "4"]}
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

    loss, metric, unit, best = "cross_entropy", "accuracy", 100, max

    def __init__(self, folder):
        """Files in the format of MNIST."""
        train_part, test_part = (PART.format(folder, part) for part in ("train", "t10k"))
        self.data = f"{{kind: idx, train: {train_part}, test: {test_part}, classes: 10}}"
        self.release = f"delta: {DELTA}"
        self.kind = "patches"
        self.spec = {
            "label": "label",
            "domain": "{kind: integer, min: 0, max: 9}",
            "loss": "zero_one",
            "mechanism": "{kind: randomized_response}",
        }


class Table:
    """A regression on a table."""

    metric, unit, best = "mse", 1, min

    def __init__(self, task, data, directory, rows):
        """Writes train.parquet and test.parquet."""
        numeric, categorical, _ = prepare(task, data, directory, rows)
        self.loss, self.kind = task.loss, "splines"
        self.data = (
            f"{{kind: table, train: {directory}/train.parquet, test: {directory}/test.parquet, "
            f"label: {task.label}, numeric: [{', '.join(numeric)}], "
            f"categorical: [{', '.join(categorical)}]}}"
        )
        self.release = f"delta: {DELTA}, label_range: [{task.low}, {task.high}]"
        self.spec = {
            "label": task.label,
            "domain": f"{{kind: integer, min: {task.low}, max: {task.high}}}",
            "loss": "squared",
            "mechanism": "{kind: optimal_unbiased}",
        }


@dataclass(frozen=True)
class Cell:
    """What is run once a seed. ``rate`` is None where there is no learning rate."""

    method: str
    epsilon: str | None
    rate: float | None = None


class Runs:
    """Finished runs of a task, remembered in a file, and the means to make more."""

    def __init__(self, name, arguments, directory):
        """Read what has been run before."""
        self.name, self.arguments, self.directory = name, arguments, directory
        self.rows = None if name in IMAGES else arguments.rows
        self.found = {}
        if arguments.results.exists():
            for line in arguments.results.read_text(encoding="utf-8").splitlines():
                run = json.loads(line)
                self.found[_key(run)] = run
        self.kind = Images if name in IMAGES else Table

    @cached_property
    def task(self):
        """Its data, written if they are a table's: not for showing what is there."""
        data = self.arguments.data
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.kind is Images:
            return Images(data.absolute() / self.name)
        return Table(TASKS[self.name], data, self.directory, self.rows)

    def run(self, cell, seed):
        """The line of one run."""
        wanted = {"task": self.name, "rows": self.rows, "method": cell.method}
        wanted |= {"epsilon": cell.epsilon, "seed": seed}
        if cell.rate is not None:
            options = self.arguments
            wanted |= {"rate": cell.rate, "epochs": options.epochs, "batch": options.batch}
        key = _key(wanted)
        if key not in self.found:
            run = wanted | self._measured(cell, seed)
            with self.arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run, ensure_ascii=False) + "\n")
            print(f"  {json.dumps(run, ensure_ascii=False)}", file=sys.stderr, flush=True)
            self.found[key] = run
        return self.found[key]

    def best_rate(self, method, epsilon):
        """The cell of the best rate for the first seed."""
        rates = CENTRAL_RATES if TRAINED[method].central else LABEL_RATES

        def value(rate):
            return self.run(Cell(method, epsilon, rate), 0)[self.kind.metric]

        return Cell(method, epsilon, self.kind.best(rates, key=value))

    def there(self, method, epsilon):
        """The lines of the best rate that has the most seeds."""
        by_rate = {}
        for run in self.found.values():
            if (run["task"], run["rows"], run["method"]) != (self.name, self.rows, method):
                continue
            if run["epsilon"] == epsilon:
                by_rate.setdefault(run.get("rate"), []).append(run)
        return max(by_rate.values(), key=len, default=[])

    def _measured(self, cell, seed):
        config = self.directory / "config.yaml"
        config.write_text(self._config(cell, seed), encoding="utf-8")
        runs = self.directory / "runs"
        runs.mkdir(exist_ok=True)
        output = runs / f"{time.time_ns()}"
        began = time.monotonic()
        command = [sys.executable, "-m", "labeldp_compile.cli", "train", str(config)]
        process = os.posix_spawn(
            sys.executable, [*command, "-o", str(output)], os.environ, file_actions=[QUIET]
        )
        _, status, usage = os.wait4(process, 0)
        seconds = time.monotonic() - began
        if status:
            print(f"  {cell} failed", file=sys.stderr)
            value = float("nan")
        else:
            result = json.loads((output / "result.json").read_text(encoding="utf-8"))
            value = self.task.unit * result["test"][self.task.metric]
        return {
            self.task.metric: value,
            "seconds": round(seconds),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime),
            "gib": round(usage.ru_maxrss / 2**20, 2),
            "hardware": hardware(),
        }

    def _config(self, cell, seed):
        data, more = self.task.data, ""
        if cell.method == NONE:
            method = "{kind: none}"
        elif cell.method == RELEASE:
            method = f"{{kind: one_release, epsilon: {cell.epsilon}, {self.task.release}}}"
        elif cell.method == PATE:
            method = f"{{kind: pate, epsilon: {cell.epsilon}, delta: {DELTA}, seed: {seed}}}"
        elif cell.method == PRIVATE:
            data = data.replace(", classes: 10", "")
            method = f"{{kind: privatized, artifact: {self._artifact(cell.epsilon)}}}"
        else:
            method = TRAINED[cell.method].config.format(
                epsilon=cell.epsilon, delta=DELTA, hull=self.arguments.hull, clip=1, artifact=None
            )
            more = (
                "model: {kind: linear}\n"
                f"optimizer: {{kind: sgd, learning_rate: {cell.rate}, schedule: cosine}}\n"
                f"training: {{epochs: {self.arguments.epochs}, batch_size: {self.arguments.batch}, "
                f"seed: {seed}, checkpoint_every: 1000}}\n"
            )
        return (
            f"version: 1\nname: run\ndata: {data}\nloss: {self.task.loss}\n"
            f"representation: {{kind: {self.task.kind}, seed: {seed}}}\nmethod: {method}\n{more}"
        )

    def _artifact(self, epsilon):
        folder = self.directory / f"artifact-{epsilon}"
        if not folder.exists():
            spec = self.directory / "spec.yaml"
            spec.write_text(SPEC.format(epsilon=epsilon, **self.task.spec), encoding="utf-8")
            compile_spec(spec).write(folder)
        return folder / "artifact.onnx"


def _key(run):
    """What tells runs apart."""
    keys = ("task", "rows", "method", "epsilon", "seed", "rate", "epochs", "batch")
    return tuple(run.get(key) for key in keys)


def study(name, arguments, directory):
    """The table and the picture of one task."""
    runs = Runs(name, arguments, directory / name)
    seeds = range(arguments.seeds)
    epsilons = arguments.epsilons or EPSILONS[name in IMAGES]
    table, all_runs = {}, []
    for method in arguments.methods:
        for epsilon in epsilons:
            if arguments.show:
                lines = runs.there(method, None if method == NONE else epsilon)
                all_runs += lines
                table[method, epsilon] = [line[runs.kind.metric] for line in lines]
                continue
            if name not in IMAGES and method in (*GRADIENTS, PATE):
                continue
            if method in GRADIENTS:
                one, count = runs.best_rate(method, epsilon), range(min(arguments.seeds, 3))
            else:
                one = Cell(method, None if method == NONE else epsilon)
                count = range(min(arguments.seeds, 3)) if method == PATE else seeds
            lines = [runs.run(one, seed) for seed in count]
            all_runs += lines
            table[method, epsilon] = [line[runs.kind.metric] for line in lines]
    table = {
        key: values for key, values in table.items() if any(table[key[0], e] for e in epsilons)
    }
    _print(name, runs, table, all_runs, arguments, epsilons)
    if arguments.pictures is not None:
        _draw(name, runs, table, arguments.pictures / f"features_{name}.png", epsilons)


def _print(name, runs, table, lines, arguments, epsilons):
    plain = [line for line in lines if line["method"] not in GRADIENTS]
    seconds = median(line["seconds"] for line in plain or lines)
    memory = max(line["gib"] for line in lines)
    many = f"{arguments.seeds} seeds (of gradients and PATE: {min(arguments.seeds, 3)})"
    if arguments.show:
        many = "the seeds whose number stands in brackets"
    print(
        f"\n{name}: test {runs.kind.metric}, mean ± sd over {many}, δ = {DELTA} of one release and "
        "of noisy gradients, "
        f"substitution. A run of the command: {seconds:.0f} s (median), at most {memory:.1f} GiB. "
        f"{lines[0]['hardware']}.\n"
    )
    print("| method | " + " | ".join(f"ε = {e}" for e in epsilons) + " |")
    print("|---" + "|---:" * len(epsilons) + "|")
    for method in dict.fromkeys(method for method, _ in table):
        print(
            f"| {method} | "
            + " | ".join(_cell(table[method, e], arguments.show) for e in epsilons)
            + " |"
        )
    for method, known in PUBLISHED.get(name, {}).items():
        cells = (f"{known[float(e)]:.1f}" if float(e) in known else "–" for e in epsilons)
        print(f"| *{method}, published* | " + " | ".join(cells) + " |")
    if name in PUBLISHED:
        print(f"\nPublished: {SOURCE}; DP-SGD and LabelDP-Pro {ACCOUNTING}.")


def _cell(values, count):
    """Mean and spread, and of how many."""
    if not values:
        return "–"
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{mean(values):.4g}{spread}" + f" ({len(values)})" * count


def _colour(method):
    """The same for a method here and in a paper."""
    family = "private labels" if method == "RR" else method.partition(",")[0]
    return COLOURS.get(family, "black")


def _draw(name, runs, table, path, epsilons):
    """The curves of the table, and published points as dashed lines."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    places = [float(e) for e in epsilons]
    for method in dict.fromkeys(method for method, _ in table):
        cells = {float(e): table[method, e] for e in epsilons if table[method, e]}
        middle = [mean(values) for values in cells.values()]
        spread = [stdev(values) if len(values) > 1 else 0 for values in cells.values()]
        style = {"lw": 2.4 if method == RELEASE else 1.2, "color": _colour(method)}
        if method == NONE:
            style |= {"ls": ":"}
        axes.errorbar(
            list(cells), middle, spread, label=method, marker="o", ms=3, capsize=2, **style
        )
    for method, known in PUBLISHED.get(name, {}).items():
        label = f"{method} (published)"
        style = {"lw": 0.9, "marker": "x", "ms": 4, "color": _colour(method)}
        axes.plot(list(known), list(known.values()), "--", label=label, **style)
    axes.set_xscale("log")
    axes.set_xticks(places, epsilons)
    axes.minorticks_off()
    axes.set_xlabel("ε (label DP; δ = 1e-5 or 0)")
    axes.set_ylabel("test accuracy in percent" if name in IMAGES else "test MSE")
    if name not in IMAGES:
        axes.set_yscale("log")
    axes.set_title(TITLES.get(name) or TASKS[name].label.replace("_", " "))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(given=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="training.py features",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (*IMAGES, *TASKS)
    methods = (NONE, RELEASE, PATE, PRIVATE, *GRADIENTS)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--rows", type=int, help="of tables: a random subset of N rows")
    parser.add_argument("--epsilons", type=lambda text: text.split(","))
    parser.add_argument("--methods", type=listed(methods), default=list(methods))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5, help="of gradients")
    parser.add_argument("--batch", type=int, default=4096, help="of gradients")
    parser.add_argument("--hull", type=int, default=64, help="examples of alt_conv's hull")
    parser.add_argument("--results", type=Path, default=Path("training_features.jsonl"))
    parser.add_argument("--pictures", type=Path, help="a folder for pictures")
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--work", type=Path, help="a folder to keep runs in; default: none is kept")
    arguments = parser.parse_args(given)
    unknown = set(arguments.tasks) - set(known)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {'; '.join(known)}")
    if arguments.data is None:
        parser.error("say --data, or set LABELDP_DATA")
    arguments.data = Path(arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.tasks or known:
            study(name, arguments, (arguments.work or Path(folder)).absolute())
