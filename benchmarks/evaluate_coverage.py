"""Do the intervals of labeldp_learn.evaluate cover, and does it choose the right model?

    LABELDP_DATA=folder python benchmarks/evaluate_coverage.py
    python benchmarks/evaluate_coverage.py --show

Three of the tables of tables_models.py: income (two classes, of which one is rare), house values
(numbers) and education (16 classes, private labels are sets). Models are trained on true labels of
training rows; how good they are does not matter here. Predictions of numbers are kept in the range
of labels, as PrivateLabelRegressor does; the linear model is measured without that, too. The test
rows are the population, in which the true metrics are known. Every draw takes rows from it with
replacement, and gives each of them a fresh private label, drawn from the matrix of the artifact.

* Coverage: 5,000 rows a draw. Of each metric of two models, and of their difference, the script
  counts how often the 95% interval holds the metric of the population, and on which side it is
  missed.
* Regret: 20,000 rows a draw. The model with the best estimate of the first metric of ``METRICS`` is
  chosen among five. The regret is its metric in the population less that of the best model.

A draw has its own seed. Every finished cell is a line of ``--results`` and is not run again.
"""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from labeldp_learn import PrivateLabels, evaluate
from labeldp_learn.evaluation import LARGER_IS_BETTER, LEAST_PROBABILITY
from labeldp_learn.private_labels import probabilities
from labeldp_verify.opening import open_artifact
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from training_studies.run_or_show import run_or_show
from training_studies.six_tables import CLASSES, NUMBERS, SETS, TASKS, Data

RESULTS = Path(__file__).parent / "results" / "evaluate_coverage.jsonl"
METRICS = {
    "income": ("log loss", "accuracy", "AUC"),
    "house": ("squared error", "absolute error", "Poisson loss"),
    "education": ("log loss", "accuracy"),
}
MECHANISMS = {"income": CLASSES, "house": NUMBERS, "education": SETS}
PAIR = ("linear", "boosting")
OPEN = "linear, unclipped"
COVERAGE, REGRET = "coverage", "regret"
TRAINED = 10_000  # rows


def models(numeric):
    """Five models by name."""
    boosting = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
    tree = DecisionTreeRegressor if numeric else DecisionTreeClassifier
    last = Ridge() if numeric else LogisticRegression(max_iter=200)
    return {
        "linear": make_pipeline(SimpleImputer(), StandardScaler(), last),
        "boosting": boosting(max_iter=60, random_state=0),
        "few rounds": boosting(max_iter=15, random_state=0),
        "stumps": boosting(max_iter=60, max_leaf_nodes=2, random_state=0),
        "tree": make_pipeline(SimpleImputer(), tree(max_depth=6, min_samples_leaf=20)),
    }


def true_metric(metric, truth, predicted):
    """The metric on true labels: numbers, or places of classes."""
    if metric == "squared error":
        return np.mean((truth - predicted) ** 2)
    if metric == "absolute error":
        return np.mean(np.abs(truth - predicted))
    if metric == "Poisson loss":
        mean = np.maximum(predicted, LEAST_PROBABILITY)
        return np.mean(mean - truth * np.log(mean))
    if metric == "accuracy":
        return np.mean(predicted.argmax(axis=1) == truth)
    if metric == "AUC":
        return roc_auc_score(truth, predicted[:, 1])
    own = predicted[np.arange(len(truth)), truth]
    return -np.mean(np.log(np.maximum(own, LEAST_PROBABILITY)))


class Population:
    """The test rows of a table: labels, predictions of models, and private labels."""

    def __init__(self, name, source, folder):
        """Read the data and train the models."""
        self.name, self.data = name, Data(TASKS[name], source, folder / name)
        data, generator = self.data, np.random.default_rng(0)
        self.truth = data.codes(data.labels("test"))
        numeric = data.classes is None
        rows = generator.permutation(data.rows)[:TRAINED]
        x, y = data.features["train"][rows], data.codes(data.labels("train"))[rows]
        self.predictions = {}
        for model, estimator in models(numeric).items():
            estimator.fit(x, y)
            how = estimator.predict if numeric else estimator.predict_proba
            self.predictions[model] = how(data.features["test"])
            if numeric:
                found = self.predictions[model]
                self.predictions[model] = found.clip(*data.task.ends)
                if model == PAIR[0]:
                    unclipped = found
        self.few = {model: self.predictions[model] for model in PAIR}
        if numeric:
            self.few[OPEN] = unclipped

    def artifact(self, epsilon):
        """Opened, with [k, m] cumulative chances of its outputs."""
        found = open_artifact(self.data.artifact(MECHANISMS[self.name], epsilon, 0))
        _, outputs, chances = probabilities(found, 0)
        return found, np.array(outputs), chances.cumsum(axis=1)

    def draw(self, opened, rows, seed):
        """(rows of the population, their private labels)."""
        artifact, outputs, ends = opened
        generator = np.random.default_rng(seed)
        chosen = generator.integers(0, len(self.truth), rows)
        numeric = self.data.classes is None
        low = artifact.label.min if numeric else 0
        labels = (self.truth[chosen] - low).astype(np.int64)
        # One search in all rows of the matrix: row y lies in [y, y + 1).
        every = (ends[:, :-1] + np.arange(len(ends))[:, None]).reshape(-1)
        found = np.searchsorted(every, labels + generator.random(rows), side="right")
        codes = (found - labels * (ends.shape[1] - 1)).clip(0, ends.shape[1] - 1)
        return chosen, PrivateLabels(artifact, outputs[codes])


def coverage(population, epsilon, rows, draws):
    """Lines of how often each interval held, and how wide it was."""
    opened, metrics = population.artifact(epsilon), METRICS[population.name]
    models = list(population.few)
    truth = {
        (metric, model): true_metric(metric, population.truth, predicted)
        for metric in metrics
        for model, predicted in population.few.items()
    }
    for metric, i, j in itertools.product(metrics, range(len(models)), range(len(models))):
        if i < j and (models[i], models[j]) != (PAIR[0], OPEN):
            one, other = models[i], models[j]
            truth[metric, f"{one} − {other}"] = truth[metric, one] - truth[metric, other]
    found = {key: [] for key in truth}
    for seed in range(draws):
        chosen, private = population.draw(opened, rows, seed)
        given = {model: predicted[chosen] for model, predicted in population.few.items()}
        for one in evaluate(private, given, metrics):
            if (value := truth.get((one.metric, one.model))) is not None:
                missed = value < one.low, value > one.high
                found[one.metric, one.model].append((*missed, one.error))
    for (metric, model), each in found.items():
        below, above, errors = np.array(each).T
        yield {
            "metric": metric, "model": model, "true": float(truth[metric, model]),
            "covered": float(1 - below.mean() - above.mean()),
            "missed": [float(below.mean()), float(above.mean())],
            "error": float(np.median(errors)),
        }  # fmt: skip


def regret(population, epsilon, rows, draws):
    """One line: how much worse than the best model the chosen one is."""
    opened, metric = population.artifact(epsilon), METRICS[population.name][0]
    sign = -1 if metric in LARGER_IS_BETTER else 1
    truth = {
        model: float(true_metric(metric, population.truth, predicted))
        for model, predicted in population.predictions.items()
    }
    best, lost = min(sign * value for value in truth.values()), []
    for seed in range(draws):
        chosen, private = population.draw(opened, rows, seed)
        given = {model: each[chosen] for model, each in population.predictions.items()}
        found = [one for one in evaluate(private, given, [metric]) if one.model in truth]
        taken = min(found, key=lambda one: sign * one.value).model
        lost.append(sign * truth[taken] - best)
    yield {
        "metric": metric, "true": truth, "regret": float(np.mean(lost)),
        "chose the best": float(np.mean(np.array(lost) == 0)), "worst": float(np.max(lost)),
    }  # fmt: skip


def run(arguments, folder):
    """Every cell that has not been run, one after another."""
    done = {cell_of(line) for line in read(arguments.results)}
    populations = {}
    for study, rows, draws in (
        (COVERAGE, arguments.rows, arguments.draws),
        (REGRET, arguments.regret_rows, arguments.regret_draws),
    ):
        for name in arguments.tables:
            for epsilon in arguments.epsilons:
                if (study, name, epsilon) in done or not draws:
                    continue
                if name not in populations:
                    populations[name] = Population(name, arguments.data, folder)
                began = time.monotonic()
                how = coverage if study == COVERAGE else regret
                found = list(how(populations[name], epsilon, rows, draws))
                seconds = round(time.monotonic() - began, 1)
                with arguments.results.open("a", encoding="utf-8") as file:
                    for each in found:
                        line = {"study": study, "table": name, "epsilon": epsilon, "rows": rows}
                        line |= {"draws": draws, "seconds": seconds, **each}
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(study, name, epsilon, f"{seconds} s", file=sys.stderr, flush=True)


def read(path):
    """The lines of all finished cells."""
    if not path.exists():
        return []
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def cell_of(line):
    """What is run at once."""
    return line["study"], line["table"], line["epsilon"]


def show(arguments):
    """Markdown tables of what is there."""
    lines = [line for line in read(arguments.results) if line["table"] in arguments.tables]
    lines = [line for line in lines if line["epsilon"] in arguments.epsilons]
    heads = " | ".join(f"ε = {epsilon}" for epsilon in arguments.epsilons)
    marks = "|---:" * len(arguments.epsilons)
    print(f"| table | metric | of | {heads} |\n|---|---|---|{marks[1:]}|")
    rows = {}
    for line in lines:
        if line["study"] == COVERAGE:
            of = OPEN if OPEN in line["model"] else "models, difference"
            cells = rows.setdefault((line["table"], line["metric"], of), {})
            cells.setdefault(line["epsilon"], []).append(line["covered"])
    for key, cells in rows.items():
        found = (cells.get(epsilon, [0]) for epsilon in arguments.epsilons)
        shown = [f"{min(each):.2%} … {max(each):.2%}" for each in found]
        print("| " + " | ".join([*key, *shown]) + " |")
    print(f"\n| table | metric | best … worst model | {heads} |\n|---|---|---|{marks[1:]}|")
    rows = {}
    for line in lines:
        if line["study"] == REGRET:
            ends = min(line["true"].values()), max(line["true"].values())
            key = line["table"], line["metric"], f"{ends[0]:.4g} … {ends[1]:.4g}"
            shown = f"{line['regret']:.2g} ({line['chose the best']:.0%})"
            rows.setdefault(key, {})[line["epsilon"]] = shown
    for key, cells in rows.items():
        print("| " + " | ".join([*key, *(cells.get(e, "–") for e in arguments.epsilons)]) + " |")


def main():
    """Run, or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(METRICS), choices=list(METRICS))
    parser.add_argument("--epsilons", nargs="+", default=["0.5", "1", "4"])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--regret-rows", type=int, default=20_000)
    parser.add_argument("--regret-draws", type=int, default=200)
    run_or_show(parser, RESULTS, run, show)


if __name__ == "__main__":
    main()
