"""Tools that people already use, on private labels of six tables: defaults, presets, wrappers.

    LABELDP_DATA=folder python benchmarks/own_tools.py --seeds 3
    python benchmarks/own_tools.py --show

The tables are those of tables_models.py; visits are measured by squared error here. The columns:

* ``true labels``: the tool with its defaults, on true labels.
* ``defaults``: the same on private labels, as somebody would who knows no better: private numbers
  as they are, private classes as classes, and sets as one row for each of their members.
* ``presets``: ``boosting_preset``; numbers as ``targets()``, classes by ``ForwardLogLoss`` where
  the tool takes a loss.
* ``wrapper``: ``PrivateLabelRegressor``, ``PrivateLabelClassifier`` (``smoothing="auto"``) with the
  same preset.
* ``grid, true validation``: LightGBM as under ``presets``, with settings of a grid and a number of
  rounds that are chosen on a fifth of the rows *by their true labels*, then fitted to all rows. Who
  has only private labels cannot do this; it says what tuning could give.
* ``labeldp train``: ``method: privatized`` on its model of interactions.

Nothing but the grid sees a true validation label. Private labels of a seed are drawn once, by the
operating system, so that a repetition gives other figures. Every finished run is a line of
``--results`` and is not run again. LightGBM and XGBoost do not come with the project.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from labeldp_learn import (
    BinaryForwardLogLoss,
    ForwardLogLoss,
    PrivateLabelClassifier,
    PrivateLabelRegressor,
    PrivateLabels,
    boosting_objective,
    boosting_preset,
)
from labeldp_runtime import Randomizer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from training_studies.hardware import hardware
from training_studies.run_or_show import run_or_show
from training_studies.six_models import METHODS, Runner, area
from training_studies.six_tables import CLASSES, NUMBERS, SETS, TASKS

RESULTS = Path(__file__).parent / "results" / "own_tools.jsonl"
TRAIN = METHODS["private labels, same model"]
MODES = ("true labels", "defaults", "presets", "wrapper")
GRID, LABELDP, CONSTANT = "grid, true validation", "labeldp train", "constant"
LINEAR, HIST, LIGHTGBM, XGBOOST = "linear model", "HistGradientBoosting", "LightGBM", "XGBoost"
TOOLS = (LINEAR, HIST, LIGHTGBM, XGBOOST)
ROUNDS = (10, 25, 50, 100, 200, 400)


def estimator(tool, numeric, preset=None, seed=0):
    """A regressor or a classifier, with defaults or with starting values."""
    if tool == LINEAR:
        last = Ridge() if numeric else LogisticRegression(max_iter=500)
        return make_pipeline(SimpleImputer(), StandardScaler(), last)
    if tool == HIST:
        kind = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
        more = {} if preset is None else preset.hist_gradient_boosting()
        return kind(random_state=seed, **more)
    if tool == LIGHTGBM:
        import lightgbm

        kind = lightgbm.LGBMRegressor if numeric else lightgbm.LGBMClassifier
        more = {} if preset is None else preset.lightgbm()
        return kind(random_state=seed, n_jobs=1, verbose=-1, **more)
    import xgboost

    kind = xgboost.XGBRegressor if numeric else xgboost.XGBClassifier
    more = {} if preset is None else preset.xgboost()
    return kind(random_state=seed, n_jobs=1, **more)


def forward(tool, x, private, loss, params, rounds, seed):
    """Features → [n, k] probabilities after any number of rounds, by a forward-corrected loss."""
    start, more = loss.start(private), dict(params)
    more.pop("n_estimators", None)
    if start.ndim:
        more["num_class"] = len(start)

    def scores(rows):
        return np.tile(start, (rows, *[1] * start.ndim))

    if tool == LIGHTGBM:
        import lightgbm

        more |= {"objective": boosting_objective(loss), "num_threads": 1, "verbose": -1}
        data = lightgbm.Dataset(
            x, loss.labels(private), init_score=scores(private.rows), params={"verbose": -1}
        )
        model = lightgbm.train({**more, "seed": seed}, data, rounds)
        return lambda new, used=rounds: loss.probabilities(
            start + model.predict(new, num_iteration=used)
        )
    import xgboost

    more |= {"disable_default_eval_metric": True, "nthread": 1, "seed": seed}
    data = xgboost.DMatrix(x, loss.labels(private), base_margin=scores(private.rows))
    model = xgboost.train(more, data, rounds, obj=boosting_objective(loss))

    def predict(new, used=rounds):
        given = xgboost.DMatrix(new, base_margin=scores(len(new)))
        found = model.predict(given, output_margin=True, iteration_range=(0, used))
        return loss.probabilities(np.asarray(found, np.float64))

    return predict


class Table:
    """A table, with private labels of each seed that are drawn once."""

    def __init__(self, name, source, folder):
        """Read the data."""
        self.runner = Runner(name, source, folder)
        self.data, self.folder = self.runner.data, folder / name
        self.truth = self.data.codes(self.data.labels("test"))
        self.labels = self.data.codes(self.data.labels("train"))
        self.numeric = self.data.classes is None

    @property
    def features(self):
        """(of rows to train on, of test rows), NaN if missing."""
        return self.data.features["train"], self.data.features["test"]

    def private(self, epsilon, seed):
        """The private labels of a seed."""
        mechanism = NUMBERS if self.numeric else SETS if len(self.data.classes) > 2 else CLASSES
        artifact = self.data.artifact(mechanism, epsilon, seed)
        kept = self.folder / f"private-{epsilon}-{seed}.npy"
        if not kept.exists():
            labels = Randomizer.load(artifact)(self.data.labels("train").tolist())
            np.save(kept, labels.astype(str) if labels.dtype == object else labels)
        return PrivateLabels(str(artifact), np.load(kept))

    def measured(self, found):
        """Metrics of predictions [n] or [n, k]; the first is the loss."""
        y = self.truth
        if self.numeric:
            return {"MSE": float(np.mean((found - y) ** 2))}
        chosen = np.maximum(found[np.arange(len(y)), y], 1e-12)
        values = {
            "log loss": float(-np.log(chosen).mean()),
            "accuracy": float(np.mean(found.argmax(axis=1) == y)),
        }
        return values if found.shape[1] > 2 else values | {"AUC": area(found[:, 1], y)}

    def constant(self):
        """The mean of the true training labels, or their shares."""
        if self.numeric:
            return np.full(len(self.truth), self.labels.mean())
        shares = np.bincount(self.labels, minlength=len(self.data.classes)) / len(self.labels)
        return np.tile(shares, (len(self.truth), 1))


def predictions(table, tool, mode, epsilon, seed):
    """[n] or [n, k] of the test rows."""
    if mode == "true labels":
        x, new = table.features
        model = estimator(tool, table.numeric, seed=seed).fit(x, table.labels)
        return model.predict(new) if table.numeric else every_class(table, model, new)
    private = table.private(epsilon, seed)
    return (of_numbers if table.numeric else of_classes)(table, private, tool, mode, seed)


def of_numbers(table, private, tool, mode, seed):
    """[n] fitted to private numbers."""
    x, new = table.features
    if mode == "defaults":
        return estimator(tool, True, seed=seed).fit(x, private.column).predict(new)
    inner = estimator(tool, True, boosting_preset(private), seed)
    if mode == "presets":
        return inner.fit(x, private.targets()).predict(new)
    return PrivateLabelRegressor(inner, private.artifact).fit(x, private.column).predict(new)


def of_classes(table, private, tool, mode, seed):
    """[n, k] fitted to private classes or sets."""
    x, new = table.features
    if mode == "defaults":
        rows, labels, weights = private.expanded()
        given = {}
        if private.answers_with_sets:
            name = "logisticregression__sample_weight" if tool == LINEAR else "sample_weight"
            given = {name: weights}
        model = estimator(tool, False, seed=seed).fit(x[rows], labels, **given)
        return every_class(table, model, new)
    if mode == "presets":
        loss = loss_of(table, private)
        preset = boosting_preset(private, loss)
        params = preset.lightgbm() if tool == LIGHTGBM else preset.xgboost()
        return forward(tool, x, private, loss, params, preset.rounds, seed)(new)
    model = PrivateLabelClassifier(
        estimator(tool, False, boosting_preset(private), seed),
        private.artifact,
        smoothing="auto",
        random_state=seed,
    ).fit(x, private.column)
    found = np.zeros((len(new), len(table.data.classes)))
    found[:, table.data.codes(model.classes_)] = model.predict_proba(new)
    return found


def every_class(table, model, new):
    """A column for every class, also for those that no row has."""
    found = np.zeros((len(new), len(table.data.classes)))
    found[:, np.asarray(model.classes_, int)] = model.predict_proba(new)
    return found


def loss_of(table, private):
    """The forward-corrected loss of the table's classes."""
    kind = BinaryForwardLogLoss if len(table.data.classes) == 2 else ForwardLogLoss
    return kind(private.artifact)


def grid(table, epsilon, seed):
    """Predictions of the best of a grid, tuned on true labels of a fifth of the rows."""
    private = table.private(epsilon, seed)
    (x, new), n = table.features, private.rows
    held, rest = np.split(np.random.default_rng([seed, 9]).permutation(n), [n // 5])
    held, rest = np.sort(held), np.sort(rest)
    loss = None if table.numeric else loss_of(table, private)
    information = boosting_preset(private, loss).information

    def fitted(rows, leaf, pull, depth, rate, rounds):
        params = {
            "learning_rate": rate, "max_depth": depth, "num_leaves": 2**depth,
            "min_child_samples": min(leaf, len(rows) // 8), "min_child_weight": 0.0,
            "reg_lambda": pull * information,
        }  # fmt: skip
        if loss is not None:
            part = PrivateLabels(private.artifact, private.column[rows])
            return forward(LIGHTGBM, x[rows], part, loss, params, rounds, seed)
        import lightgbm

        model = lightgbm.LGBMRegressor(
            n_estimators=rounds, random_state=seed, n_jobs=1, verbose=-1, **params
        ).fit(x[rows], private.targets()[rows])
        return lambda given, used=rounds: model.predict(given, num_iteration=used)

    tried = []
    for leaf, pull in ((50, 10), (400, 100), (2000, 1000)):
        for depth, rate in ((2, 0.1), (3, 0.05), (5, 0.05)):
            predict = fitted(rest, leaf, pull, depth, rate, ROUNDS[-1])
            for rounds in ROUNDS:
                found = loss_on(table, predict(x[held], rounds), held)
                tried.append((found, (leaf, pull, depth, rate, rounds)))
    chosen = min(tried)[1]
    return fitted(np.arange(n), *chosen)(new), chosen


def loss_on(table, found, rows):
    """The mean loss on true labels of training rows."""
    y = table.labels[rows]
    if table.numeric:
        return float(np.mean((found - y) ** 2))
    return float(-np.log(np.maximum(found[np.arange(len(y)), y], 1e-12)).mean())


def cells(arguments):
    """(table, tool, mode, ε, seed): first one seed of everything."""
    for seed in range(arguments.seeds):
        for table in arguments.tables:
            if not seed:
                yield table, "", CONSTANT, None, 0
            for epsilon in arguments.epsilons:
                for tool in TOOLS:
                    for mode in MODES:
                        forward = TASKS[table].ends is not None or tool in (LIGHTGBM, XGBOOST)
                        if mode == "presets" and (tool == LINEAR or not forward):
                            continue
                        private = mode != "true labels"
                        yield table, tool, mode, epsilon if private else None, seed
        for table in arguments.tables:
            for epsilon in arguments.epsilons:
                yield table, LIGHTGBM, GRID, epsilon, seed
                if arguments.train:
                    yield table, "", LABELDP, epsilon, seed


def run(arguments, folder):
    """All cells that are not there yet."""
    done, tables = read(arguments.results), {}
    for cell in cells(arguments):
        if cell in done:
            continue
        name, tool, mode, epsilon, seed = cell
        if name not in tables:
            tables.clear()
            tables[name] = Table(name, arguments.data, folder)
        table, more, began = tables[name], {}, time.monotonic()
        if mode == CONSTANT:
            metrics = table.measured(table.constant())
        elif mode == LABELDP:
            metrics = train(table, epsilon, seed)
        elif mode == GRID:
            found, chosen = grid(table, epsilon, seed)
            metrics, more = table.measured(found), {"chosen": chosen}
        else:
            metrics = table.measured(predictions(table, tool, mode, epsilon, seed))
        line = {"table": name, "tool": tool, "mode": mode, "epsilon": epsilon, "seed": seed}
        line |= {"metrics": metrics, "seconds": round(time.monotonic() - began, 1), **more}
        line |= {"rows": len(table.labels), "hardware": hardware()}
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        done[cell] = line
        print(json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)


def train(table, epsilon, seed):
    """Test metrics of ``labeldp train``; of counts, by squared error."""
    task = table.runner.task
    if table.numeric and task.loss != "squared":
        table.runner.task = replace(task, loss="squared", metrics=("MSE",))
    return table.runner.metrics(TRAIN, epsilon, seed)[0]


def read(path):
    """Finished runs by their cells."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {
        (run["table"], run["tool"], run["mode"], run["epsilon"], run["seed"]): run for run in lines
    }


def show(arguments):
    """Markdown tables of what is there."""
    done = read(arguments.results)

    def shown(table, tool, mode, epsilon):
        wanted = (table, tool, mode, epsilon)
        found = [
            run["metrics"] for cell, run in sorted(done.items(), key=str) if cell[:4] == wanted
        ]
        if not found:
            return "–"
        values = [next(iter(metrics.values())) for metrics in found]
        spread = f" ± {stdev(values) / len(values) ** 0.5:.2g}" if len(values) > 1 else ""
        return f"{mean(values):.4g}{spread}"

    for epsilon in arguments.epsilons:
        for table in arguments.tables:
            runs = [run for cell, run in done.items() if cell[0] == table]
            if not runs:
                continue
            metric = next(iter(runs[0]["metrics"]))
            print(
                f"\n{TASKS[table].title}, {runs[0]['rows']:,} rows, ε = {epsilon}: test {metric}\n"
            )
            print("| tool | " + " | ".join(MODES) + " |\n|---" + "|---:" * len(MODES) + "|")
            for tool in TOOLS:
                row = [shown(table, tool, m, None if m == MODES[0] else epsilon) for m in MODES]
                print(f"| {tool} | " + " | ".join(row) + " |")
            others = ((CONSTANT, "", None), (GRID, LIGHTGBM, epsilon), (LABELDP, "", epsilon))
            print("\n" + "; ".join(f"{m}: {shown(table, t, m, e)}" for m, t, e in others))


def main():
    """Run, or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--epsilons", nargs="+", default=["1"])
    parser.add_argument("--no-train", dest="train", action="store_false")
    run_or_show(parser, RESULTS, run, show)


if __name__ == "__main__":
    main()
