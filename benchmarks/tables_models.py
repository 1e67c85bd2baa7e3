"""Models of tables: what label privacy costs, against splines and gradient boosting.

    LABELDP_DATA=folder python benchmarks/tables_models.py --seeds 5
    LABELDP_DATA=folder python benchmarks/tables_models.py --tables diabetes,deliveries --seeds 1
    python benchmarks/tables_models.py --show

The tables: weeks worked and income over $50,000 (census: 50,000 rows of the training file, drawn
once with a fixed seed, and its test file), hours per week and education as 16 classes (adult, its
two files), house values in ten thousands and doctor visits (four fifths of the rows, and the rest;
the same ones for every seed). The file of visits lists the years of a person one after another, so
blocks of 100 rows stay together: otherwise a model can know the persons of the test rows. Survey
weights are no features, and income is none of the other labels. House values have a column with
nulls, total_bedrooms. Only boosting and the methods with interactions, which take missing numbers,
see it. Fourteen further ones, which ``--tables`` names, are from scikit-learn and statsmodels, or
made up (training_studies/own_tables.py).

The methods:

* ``staged release``, ``one release``: (ε, δ) with δ = 1e-5, for one label; of numbers also with a
  ``label_range`` whose upper end is ten times as far from the lower one as labels need.
* ``private labels``: pure ε. Numbers: unbiased, with a private prior of ``split: auto``. Classes:
  sets of classes (what ``mechanism: auto`` takes for training). Fitted on splines or on the model
  of the staged release.
* ``no privacy``: the same two models on true labels. One run: no seed changes it.
* ``boosting``: scikit-learn and LightGBM, without privacy and on private labels (the same
  randomizer for numbers, randomized response for classes; training_studies/boosting.py).
* ``constant``: the mean of the true training labels, or their shares; ``private constant``: with
  Gaussian noise for all of (ε, δ).
* ``staged release, first edition``: shown, but not run, as its code is no longer there.

What is tuned on what: nothing of ``labeldp train``, which runs with its defaults in a process of
its own. Boosting has a list of five or six settings, and a number of rounds. Both are chosen on a
fifth of the training rows, by their true labels without privacy, and by their *private* labels
otherwise. No run chooses anything on test rows. The test labels are true ones. How boosting uses
private labels was revised after test figures of the first seed had been seen, to make it stronger:
a sixth setting, how shares are mixed and bounded, and least squares to judge trees for visits.

A seed draws the representation, noise, private labels and prior of a run, and the rows that
boosting holds out. Noise and private labels come from the operating system, so a repetition gives
other figures. Every finished run is a line of ``--results``, and is not run again: interrupt and
go on at will. A method that this version of labeldp does not have is named and left out.

Boosting needs two packages that are not among the project's: scikit-learn and lightgbm.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

from labeldp_trainer import ConfigError, parse_config
from training_studies.boosting import INSTALL, LIBRARIES
from training_studies.own_tables import OWN_TABLES
from training_studies.six_models import (
    BEST,
    DELTA,
    FIRST,
    METHODS,
    NOISELESS,
    ONE,
    STAGED,
    WIDE,
    Boosted,
    Earlier,
    RunError,
    Runner,
    Trained,
)
from training_studies.six_tables import TASKS as SIX

TASKS = SIX | OWN_TABLES
RESULTS = Path(__file__).parent / "results" / "tables_models.jsonl"
EPSILONS = ("0.25", "0.5", "1", "2", "4")
LARGER_IS_BETTER = ("accuracy", "AUC")


class Results:
    """The lines of finished runs."""

    def __init__(self, path):
        """Read what has been run before."""
        self.path, self.found = path, {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                run = json.loads(line)
                self.found[run["table"], run["method"], run["epsilon"], run["seed"]] = run

    def add(self, run):
        """Append a line, and print it."""
        line = json.dumps(run, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(f"  {line}", file=sys.stderr, flush=True)
        self.found[run["table"], run["method"], run["epsilon"], run["seed"]] = run

    def runs(self, table, method, epsilon):
        """All seeds of a cell."""
        if method in METHODS and not METHODS[method].private:
            epsilon = None
        wanted = (table, method, epsilon)
        return [run for key, run in sorted(self.found.items(), key=str) if key[:3] == wanted]

    def values(self, table, method, epsilon):
        """The loss of every seed; of boosting, with the library that held-out rows prefer."""
        loss = TASKS[table].metrics[0]
        if method != BEST:
            return [run["metrics"][loss] for run in self.runs(table, method, epsilon)]
        by_seed = {}
        for library in LIBRARIES:
            for run in self.runs(table, f"{BEST}, {library}", epsilon):
                by_seed.setdefault(run["seed"], []).append(run)
        best = [
            min(runs, key=lambda run: run["chosen"]["held_out_loss"]) for runs in by_seed.values()
        ]
        return [run["metrics"][loss] for run in best]


def cells(arguments):
    """(seed, table, method, ε): first one seed of everything."""
    for seed in range(arguments.seeds):
        for table in arguments.tables:
            for name in arguments.only:
                method = METHODS[name]
                if name.endswith(WIDE) and TASKS[table].ends is None:
                    continue  # classes have no range
                if isinstance(method, Earlier):
                    continue
                if seed and not method.private and not isinstance(method, Boosted):
                    continue  # no seed changes it
                for epsilon in arguments.epsilons if method.private else (None,):
                    yield seed, table, name, epsilon


def run(arguments, folder):
    """All cells that are not there yet."""
    results, runners, left_out = Results(arguments.results), {}, set()
    for seed, table, name, epsilon in cells(arguments):
        if (table, name, epsilon, seed) in results.found or name in left_out:
            continue
        if table not in runners:
            runners[table] = Runner(table, arguments.data, folder)
        runner, method = runners[table], METHODS[name]
        if isinstance(method, Trained):
            try:
                parse_config(runner.config(method, epsilon, seed, "artifact.onnx"))
            except ConfigError as error:
                print(f"{name} is left out: labeldp refuses it: {error}", file=sys.stderr)
                left_out.add(name)
                continue
        try:
            results.add(runner.finished(table, name, method, epsilon, seed))
        except ImportError as error:
            print(f"{name} is left out: {INSTALL} ({error})", file=sys.stderr)
            left_out.add(name)
            continue
        except RunError as error:
            print(f"{table}, {name}, ε = {epsilon}, seed {seed} failed: {error}", file=sys.stderr)


def show(arguments):
    """Markdown tables of what is there."""
    results = Results(arguments.results)
    for table in arguments.tables:
        task = TASKS[table]
        runs = [r for key, r in results.found.items() if key[0] == table]
        if not runs:
            continue
        for metric in task.metrics:
            better = "larger" if metric in LARGER_IS_BETTER else "smaller"
            print(
                f"\n{task.title}, {runs[0]['rows']:,} rows: test {metric} ({better} is better), "
                f"mean ± standard error (seeds); δ = {DELTA} of releases:\n"
            )
            print("| method | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
            print("|---" + "|---:" * len(arguments.epsilons) + "|")
            for name in arguments.only:
                found = [results.runs(table, name, epsilon) for epsilon in arguments.epsilons]
                if any(found):
                    shown = [cell([run["metrics"][metric] for run in one]) for one in found]
                    print(f"| {name} | " + " | ".join(shown) + " |")
    for method in (FIRST, STAGED, NOISELESS):
        summary(results, arguments, method)


def cell(values):
    """The mean, its standard error and how many there are."""
    if not values:
        return "–"
    center = f"{mean(values):.4g}"
    if len(values) == 1:
        return f"{center} (1)"
    return f"{center} ± {stdev(values) / len(values) ** 0.5:.2g} ({len(values)})"


def _error(values):
    """The standard error of a mean; 0 of a single value."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def summary(results, arguments, method):
    """How much of the way from one release to boosting without privacy ``method`` goes."""
    print(
        f"\n(one release − {method})/(one release − boosting without privacy), of the means "
        "of the loss over seeds. Of the two libraries, each seed takes the one with the smaller "
        "loss on held-out training rows. A dash: not run, or no gap beyond two standard errors:\n"
    )
    print("| table | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
    print("|---" + "|---:" * len(arguments.epsilons) + "|")
    shares = {}
    for table in arguments.tables:
        for epsilon in arguments.epsilons:
            found = [results.values(table, name, epsilon) for name in (ONE, method, BEST)]
            if all(found):
                one, reached, best = map(mean, found)
                if one - best > 2 * math.hypot(_error(found[0]), _error(found[2])):
                    shares[table, epsilon] = (one - reached) / (one - best)
        row = [shares.get((table, epsilon)) for epsilon in arguments.epsilons]
        texts = ["–" if share is None else f"{share:.1%}" for share in row]
        print(f"| {TASKS[table].title} | " + " | ".join(texts) + " |")
    means = []
    for epsilon in arguments.epsilons:
        there = [shares[key] for key in shares if key[1] == epsilon]
        means.append(f"{mean(there):.1%} ({len(there)} tables)" if there else "–")
    print("| mean | " + " | ".join(means) + " |")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument(
        "--only", type=lambda text: text.split(";"), default=list(METHODS), help="METHOD;METHOD"
    )
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(SIX))
    parser.add_argument("--epsilons", type=lambda text: text.split(","), default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=5, help="how many; finished ones count")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    for what, given, known in (
        ("method", arguments.only, METHODS),
        ("table", arguments.tables, TASKS),
    ):
        if unknown := set(given) - set(known):
            parser.error(f"unknown {what} {sorted(unknown)[0]!r}: choose of {'; '.join(known)}")
    if not arguments.show and arguments.data is None:
        print("LABELDP_DATA names no folder: this shows what was run before", file=sys.stderr)
    elif not arguments.show:
        arguments.data = Path(arguments.data).absolute()
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, Path(folder).absolute())
    show(arguments)


if __name__ == "__main__":
    main()
