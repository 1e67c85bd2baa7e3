"""Rivals of 2024 to 2026 beside DP-SGD, one release and private labels: loss over no privacy.

    LABELDP_DATA=folder python benchmarks/training.py rivals [--draws 5] [--show]

Linear models on the first 100 components of the same public vectors (``splines`` of tables,
``patches`` of images, learned once). 20,000 rows train, 2,000 others are held out for choices, and
the table is of test rows. ε is for the substitution of one label, or of all labels of a user;
δ = 1e-5 of gradients and sums, 0 of private labels. Where a method has choices, the first draw
makes them on true labels of the held-out rows, at ε = 0.5 and 2, which favors these methods. Each
draw has fresh noise. Finished runs are lines of ``--results``, and are not run again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.data.users import rows_of_users
from training_studies.hardware import hardware
from training_studies.listed import listed
from training_studies.rival_methods import CHOICES, METHODS, Rows, fits
from training_studies.six_models import METHODS as OF_TABLES
from training_studies.six_models import Runner, area
from training_studies.six_tables import NUMBERS, SETS, SPEC

from labeldp_compile import compile_spec

RESULTS = Path(__file__).parents[1] / "results" / "training_rivals.jsonl"
TRAIN, HELD, WIDTH = 20_000, 2_000, 100
EPSILONS = ("0.5", "1", "2", "4")
CHOSEN_AT = {"1": "0.5", "4": "2"}  # for lack of time
MOST_OF_USER = 5
IMAGES = ("mnist", "fashion-mnist")
TASKS = ("weeks", "house", "education", "income", *IMAGES, "income, users")
METRIC = {
    "weeks": "MSE", "house": "MSE", "education": "log loss", "income": "log loss",
    "mnist": "error in %", "fashion-mnist": "error in %", "income, users": "AUC",
}  # fmt: skip
STAGED = "staged release"


@dataclass(frozen=True)
class Task:
    """Rows to train on, and vectors and labels of held-out and of test rows."""

    name: str
    rows: Rows
    parts: dict[str, tuple[np.ndarray, np.ndarray]]
    folder: Path
    staged: Callable[[str, int], float] | None = None

    def measured(self, part, weights, bias):
        """The metrics of a linear model."""
        vectors, y = self.parts[part]
        scores = vectors.astype(float) @ weights + bias
        if self.rows.classes is None:
            low, high = self.rows.ends
            return {"MSE": float(np.mean((np.clip(scores[:, 0], low, high) - low - y) ** 2))}
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        found = {
            "log loss": float(-logs[np.arange(len(y)), y].mean()),
            "error in %": float(100 * np.mean(scores.argmax(axis=1) != y)),
        }
        if self.rows.classes == 2:
            found["AUC"] = area(scores[:, 1] - scores[:, 0], y)
        return found

    def artifact(self, epsilon):
        """The product's randomizer: its file and what it holds. Its prior is drawn anew."""
        rows, folder = self.rows, self.folder / f"artifact-{time.time_ns()}"
        folder.mkdir(parents=True)
        low, high = rows.ends or (0, rows.classes - 1)
        numbers = rows.classes is None
        labels = pa.table({"label": rows.labels + low})
        pq.write_table(labels, folder / "train.parquet")
        text = SPEC.format(
            label="label",
            domain=f"{{kind: integer, min: {low}, max: {high}}}",
            outside="clamp",
            epsilon=f"{float(epsilon):g}",
            loss="squared" if numbers else "zero_one",
            prior="{kind: private, data: train.parquet}" if numbers else "{kind: uniform}",
            mechanism=NUMBERS if numbers else SETS,
        )
        spec = folder / "spec.yaml"
        spec.write_text(text, encoding="utf-8")
        compiled = compile_spec(spec)
        return compiled.write(folder), compiled.artifact


def trained(config, folder):
    """A run folder of ``labeldp train``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_suffix(".yaml")
    path.write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "labeldp_compile.cli", "train", str(path), "-o", str(folder)]
    subprocess.run(command, capture_output=True, check=True)
    return folder


def with_vectors(name, run, labels, classes, ends, folder):
    """A task from a run without privacy; labels count from 0."""
    kept = run / "representation"
    train, rest = np.load(kept / "train.npy"), np.load(kept / "test.npy")
    with np.load(kept / "learnt.npz") as learned:
        spectrum = learned["spectrum"]
    y = {part: own - (ends[0] if ends else 0) for part, own in labels.items()}
    train, rest, spectrum = train[:, :WIDTH], rest[:, :WIDTH], spectrum[:WIDTH]
    rows = Rows(np.ascontiguousarray(train), spectrum, y["train"], classes, ends)
    held = len(y["held"])
    parts = {"held": (rest[:held], y["held"]), "test": (rest[held:], y["test"])}
    return Task(name, rows, parts, folder)


def table_task(name, data, folder):
    """A task of ``six_tables``, with fewer rows."""
    runner = Runner(name, data, folder)
    own, place = runner.data, folder / name
    order = np.random.default_rng(1).permutation(own.rows)[: TRAIN + HELD]
    held = len(order) // 11
    parts = {"train": own.parts["train"].take(pa.array(order[held:]))}
    parts |= {"held": own.parts["train"].take(pa.array(order[:held])), "test": own.parts["test"]}
    own.parts["train"] = parts["train"]
    pq.write_table(parts["train"], place / "train.parquet")
    pq.write_table(parts["test"], place / "alone.parquet")
    both = pa.concat_tables([parts["held"], parts["test"]]).unify_dictionaries()
    pq.write_table(both, place / "test.parquet")
    run = place / "vectors"
    if not run.exists():
        plain = OF_TABLES["no privacy, splines"]
        trained(runner.config(plain, None, 0, None), run)
    label = runner.task.label
    labels = {part: own.codes(table[label].to_numpy()) for part, table in parts.items()}
    labels = {part: found.astype(np.int64) for part, found in labels.items()}
    classes = None if own.classes is None else len(own.classes)
    found = with_vectors(name, run, labels, classes, runner.task.ends, place)

    def staged(epsilon, draw):
        config = runner.config(OF_TABLES[STAGED], epsilon, draw, None)
        output = place / f"staged-{time.time_ns()}"
        trained(config.replace("test.parquet", "alone.parquet"), output)
        test = json.loads((output / "result.json").read_text(encoding="utf-8"))["test"]
        return {"MSE": test.get("mse"), "log loss": test["loss"]}

    return replace(found, staged=staged)


def image_task(name, data, folder):
    """Images in the format of MNIST."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    images, labels = (
        {
            part: read_idx(data / name / f"{part}-{kind}.gz")
            for part in ("train", "t10k")
        }
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )  # fmt: skip
    cut = slice(TRAIN, TRAIN + HELD)
    y = {"train": labels["train"][:TRAIN], "held": labels["train"][cut], "test": labels["t10k"]}
    y = {part: own.astype(np.int64) for part, own in y.items()}
    rest = np.concatenate([images["train"][cut], images["t10k"]])
    both = np.concatenate([y["held"], y["test"]])
    for part, x, own in (("train", images["train"][:TRAIN], y["train"]), ("test", rest, both)):
        np.savez(place / f"{part}.npz", features=x[..., None], label=own)
    run = place / "vectors"
    if not run.exists():
        config = f"""
version: 1
name: vectors
data: {{kind: npz, train: {place}/train.npz, test: {place}/test.npz, features: features,
       label: label, classes: 10}}
loss: cross_entropy
representation: {{kind: patches, patches: 150, pool: 2, seed: 0}}
method: {{kind: none}}
"""
        trained(config, run)
    return with_vectors(name, run, y, 10, None, place)


def with_users(task):
    """Users drawn at random, with a geometric number of rows of mean 5, of which 5 are used."""
    rows = task.rows
    random = np.random.default_rng(2)
    sizes = random.geometric(1 / MOST_OF_USER, len(rows.labels))
    owners = np.repeat(np.arange(len(sizes)), sizes)[: len(rows.labels)]
    own = rows_of_users(owners, MOST_OF_USER, 0)
    kept = np.sort(own.rows[own.present])
    found = replace(
        rows,
        vectors=rows.vectors[kept],
        labels=rows.labels[kept],
        owners=owners[kept],
        most=MOST_OF_USER,
    )
    return replace(task, name="income, users", rows=found, staged=None)


class Runs:
    """Finished runs, remembered in a file, and the means to make more."""

    def __init__(self, arguments, folder):
        """Read what has been run before."""
        self.arguments, self.folder, self.done = arguments, folder, {}
        self.tasks = {}
        if arguments.results.exists():
            for line in arguments.results.read_text(encoding="utf-8").splitlines():
                run = json.loads(line)
                self.done[key(run)] = run

    def task(self, name):
        """Its vectors, once."""
        if name not in self.tasks:
            data = self.arguments.data
            if name == "income, users":
                self.tasks[name] = with_users(self.task("income"))
            elif name in IMAGES:
                self.tasks[name] = image_task(name, data, self.folder)
            else:
                self.tasks[name] = table_task(name, data, self.folder)
        return self.tasks[name]

    def run(self, name, method, epsilon, draw, choice, part="test"):
        """The line of one run."""
        wanted = {"task": name, "method": method, "epsilon": epsilon, "draw": draw}
        wanted |= {"choice": choice, "part": part}
        if key(wanted) not in self.done:
            task, began = self.task(name), time.monotonic()
            try:
                found = self._measured(task, method, epsilon, draw, choice, part)
            except ArithmeticError as error:
                found = {"failed": str(error)}
            line = wanted | {"metrics": found, "seconds": round(time.monotonic() - began, 1)}
            line |= {"rows": len(task.rows.labels), "hardware": hardware()}
            with self.arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(f"  {json.dumps(line)}", file=sys.stderr, flush=True)
            self.done[key(wanted)] = line
        return self.done[key(wanted)]

    def _measured(self, task, method, epsilon, draw, choice, part):
        if method == STAGED:
            return task.staged(epsilon, draw)
        more = {"artifact": task.artifact} if method == "private labels" else {}
        exact = None if epsilon is None else Fraction(epsilon)
        choice = tuple(choice) if isinstance(choice, list) else choice
        weights, bias = METHODS[method](task.rows, exact, choice, **more)
        return task.measured(part, weights, bias)

    def chosen(self, name, method, epsilon):
        """The choice that is best on the held-out rows, for the first draw."""
        if method not in CHOICES:
            return None

        def worth(choice):
            metric = METRIC[name]
            value = self.run(name, method, epsilon, 0, choice, "held")["metrics"].get(metric)
            if value is None:
                return -np.inf
            return value if metric == "AUC" else -value

        best = max(map(jsoned, CHOICES[method]), key=worth)
        if "DP" in method:  # a smaller C, at the best rate for the same step and at a larger one
            smaller = [[best[0] * times, 0.3] for times in (1.0, 3.3)]
            best = max([best, *smaller], key=worth)
        return best


def jsoned(choice):
    """As it is in the file."""
    return list(choice) if isinstance(choice, tuple) else choice


def key(run):
    """What tells runs apart."""
    names = ("task", "method", "epsilon", "draw", "choice", "part")
    return json.dumps([run[name] for name in names])


def methods_of(name):
    """The methods of a task, by what can be known without its rows."""
    classes = {"education": 16, "mnist": 10, "fashion-mnist": 10}.get(name, 2)
    classes = None if name in ("weeks", "house") else classes
    owners = np.zeros(1) if "users" in name else None
    like = Rows(None, None, None, classes, None, owners)
    found = [method for method in METHODS if fits(method, like)]
    return found + ([STAGED] if name not in IMAGES and "users" not in name else [])


def measure(runs, name):
    """All cells of a task."""
    arguments = runs.arguments
    runs.run(name, "no privacy", None, 0, None)
    for epsilon in arguments.epsilons:
        for method in methods_of(name):
            if method == "no privacy" or (arguments.methods and method not in arguments.methods):
                continue
            choice = runs.chosen(name, method, CHOSEN_AT.get(epsilon, epsilon))
            for draw in range(arguments.draws):
                runs.run(name, method, epsilon, draw, choice)


def show(runs, name):
    """The table of a task, of what was run."""
    metric, found = METRIC[name], {}
    for run in runs.done.values():
        if run["task"] == name and run["part"] == "test":
            value = run["metrics"].get(metric)
            found.setdefault((run["method"], run["epsilon"]), []).append(value)
    if ("no privacy", None) not in found:
        return
    plain = found["no privacy", None][0]
    print(f"\n## {name}: {metric}; without privacy {plain:.4g}\n")
    print("| method | " + " | ".join(f"ε = {e}" for e in EPSILONS) + " |")
    print("|---" + "|---:" * len(EPSILONS) + "|")
    for method in methods_of(name)[1:]:
        cells = []
        for epsilon in EPSILONS:
            values = found.get((method, epsilon), [])
            if not values or None in values:
                cells.append("–" if not values else "failed")
                continue
            over = [v if metric == "AUC" else v - plain for v in values]
            spread = f" ± {stdev(over):.2g}" if len(over) > 1 else ""
            cells.append(f"{mean(over):.3g}{spread} ({len(over)})")
        print(f"| {method} | " + " | ".join(cells) + " |")


def main(given=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="training.py rivals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help=f"of {'; '.join(TASKS)}")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--methods", type=listed((*METHODS, STAGED)))
    parser.add_argument("--epsilons", type=lambda text: text.split(","), default=list(EPSILONS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, help="where vectors are kept")
    parser.add_argument("--show", action="store_true", help="run nothing")
    arguments = parser.parse_args(given)
    unknown = set(arguments.tasks) - set(TASKS)
    if unknown:
        parser.error(f"unknown task {sorted(unknown)[0]!r}: choose of {'; '.join(TASKS)}")
    if arguments.data is None and not arguments.show:
        parser.error("say --data, or set LABELDP_DATA")
    arguments.data = arguments.data and Path(arguments.data).absolute()
    with tempfile.TemporaryDirectory() as temporary:
        runs = Runs(arguments, (arguments.folder or Path(temporary)).absolute())
        for name in arguments.tasks:
            if not arguments.show:
                measure(runs, name)
            show(runs, name)
