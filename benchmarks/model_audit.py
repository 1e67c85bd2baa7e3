"""What ``labeldp audit`` finds about trained models, and whether its bounds hold.

First models that keep their ε = 1: each label was randomized once, so nothing else can spend more.
The nearest neighbour repeats the randomized label of a training row, which is all that a model of
ε = 1 can give away. The stand-in sees all features, two of them, or none. At most 5% of the bounds
may be above 1. Then planted faults, all claimed to be ε = 1. Tables are made up. Prints markdown.

    python benchmarks/model_audit.py [RUNS [AUDITS]]
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_learn.model_audit import AuditRows, ModelAudit, audit_model

EPSILON = 1.0
STAND_INS = {"all features": slice(None), "two features": slice(2), "no feature": slice(0)}
NEAREST = "nearest neighbour"


def table(rows: int, classes: int | None, random: np.random.Generator):
    """Features [n, 6] and labels [n]: classes, or numbers from 0 to 20."""
    x = random.normal(size=(rows, 6))
    if classes is None:
        mean = 10 + 4 * x[:, 0] + 3 * np.sin(2 * x[:, 1])
        return x, np.clip(np.round(mean + 2 * random.normal(size=rows)), 0, 20)
    scores = x @ random.normal(size=(6, classes)) * 0.8
    scores[:, 0] += 2 * np.abs(x[:, 0])
    return x, (scores + random.gumbel(size=scores.shape)).argmax(axis=1)


def randomized(labels, count: int, epsilon: float, random: np.random.Generator):
    """Randomized response over 0 … count − 1."""
    kept = random.random(len(labels)) < np.exp(epsilon) / (np.exp(epsilon) + count - 1)
    return np.where(kept, labels, (labels + random.integers(1, count, len(labels))) % count)


def outputs(model, x, classes: int | None):
    """Probabilities [n, k], or numbers [n, 1]."""
    if classes is None:
        return model.predict(x)[:, None].astype(float)
    found = np.zeros((len(x), classes))
    found[:, model.classes_] = model.predict_proba(x)
    return found


def audited(
    model: Callable[[], object],
    classes: int | None,
    spent: float | None,
    rows: int,
    seed: int,
    seen: slice = slice(None),
) -> ModelAudit:
    """Audit a model that was trained on labels randomized with ε ``spent``, or true ones."""
    random = np.random.default_rng(seed)
    x, y = table(2 * rows, classes, random)
    labels = y[:rows]
    if spent is not None:
        labels = randomized(labels, classes or 21, spent, random)
    fitted = model()
    fitted.fit(x[:rows], labels)
    found = outputs(fitted, x, classes)
    parts = (slice(rows), slice(rows, None))
    own = [AuditRows(y[at].astype(float), found[at], x[at][:, seen]) for at in parts]
    return audit_model(*own, classes, epsilon=EPSILON, random=random)


class Sums:
    """Released sums of labels, with Laplace noise of ε = 1 for labels in a range of ``width``
    around 10, to which nobody clipped them. Predictions are means of ``group`` rows that are
    neighbours in the first feature, or a least-squares fit to six columns (no ``group``)."""

    def __init__(self, group: int | None, width: float) -> None:
        self.group, self.width = group, width

    def fit(self, x, y):
        """From features [n, 6] and labels [n]."""
        random, scale = np.random.default_rng(x[0].view(np.uint64)), self.width / EPSILON
        y = y - 10
        if self.group is None:  # a label's part of all sums: its change times Σ|x| ≤ 6
            x = np.clip(x, -1, 1)
            noise = random.laplace(scale=6 * scale, size=x.shape[1])
            self.found = np.linalg.solve(x.T @ x, x.T @ y + noise)
            return
        self.edges = np.sort(x[:, 0])[self.group :: self.group]
        sums = np.bincount(self._groups(x), y, len(self.edges) + 1)
        self.found = (sums + random.laplace(scale=scale, size=len(sums))) / self.group

    def _groups(self, x):
        return np.searchsorted(self.edges, x[:, 0], side="right")

    def predict(self, x):
        """Numbers [n]."""
        if self.group is None:
            return 10 + np.clip(x, -1, 1) @ self.found
        return 10 + self.found[self._groups(x)]


HONEST = {
    f"{NEAREST}, 2 classes": (lambda: KNeighborsClassifier(1), 2),
    f"{NEAREST}, 4 classes": (lambda: KNeighborsClassifier(1), 4),
    f"{NEAREST}, numbers": (lambda: KNeighborsRegressor(1), None),
    "tree, 2 classes": (lambda: DecisionTreeClassifier(min_samples_leaf=5), 2),
    "logistic regression, 2 classes": (LogisticRegression, 2),
}
PLANTED = {
    f"ε = 2, {NEAREST}": (lambda: KNeighborsClassifier(1), 2, 2.0),
    f"ε = 3, {NEAREST}": (lambda: KNeighborsClassifier(1), 2, 3.0),
    f"ε = 10, {NEAREST}": (lambda: KNeighborsClassifier(1), 2, 10.0),
    "ε = 3, tree": (lambda: DecisionTreeClassifier(min_samples_leaf=5), 2, 3.0),
    "ε = 10, tree": (lambda: DecisionTreeClassifier(min_samples_leaf=5), 2, 10.0),
    f"true labels, {NEAREST}": (lambda: KNeighborsClassifier(1), 2, None),
    "true labels, tree": (lambda: DecisionTreeClassifier(min_samples_leaf=5), 2, None),
    "true labels, boosting": (HistGradientBoostingClassifier, 2, None),
    "true labels, logistic regression": (LogisticRegression, 2, None),
    f"true labels, {NEAREST}, numbers": (lambda: KNeighborsRegressor(1), None, None),
    "true labels, ridge, numbers": (Ridge, None, None),
    "forgotten clip to 8 … 12, sums of 2 rows": (lambda: Sums(2, 4), None, None),
    "forgotten clip to 9.5 … 10.5, sums of 2 rows": (lambda: Sums(2, 1), None, None),
    "forgotten clip to 9.5 … 10.5, sums of 10 rows": (lambda: Sums(10, 1), None, None),
    "forgotten clip to 9.5 … 10.5, sums of 6 columns": (lambda: Sums(None, 1), None, None),
}


def honest(runs: int) -> None:
    """The table of models that keep their ε."""
    print(
        "| model | stand-in | audits | too poor | bound > 1 | accused | bound: median | largest |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    each = -(-runs // (len(HONEST) * len(STAND_INS)))
    for number, (name, (model, classes)) in enumerate(HONEST.items()):
        for where, seen in STAND_INS.items():
            seeds = range(10_000 * number, 10_000 * number + each)
            found = [audited(model, classes, EPSILON, 2000, seed, seen) for seed in seeds]
            bounds = [one.bound for one in found if one.bound is not None]
            print(
                f"| {name} | {where} | {each} | {each - len(bounds)} | "
                f"{sum(bound > EPSILON for bound in bounds)} | {sum(one.refuted for one in found)} "
                f"| {np.median(bounds):.2f} | {max(bounds):.2f} |",
                flush=True,
            )


def planted(audits: int) -> None:
    """The table of faults: how often the bound is above 1, and how often the model is accused."""
    sizes = (1000, 4000, 16_000)
    heads = " | ".join(f"{n:,} rows: bound > 1 | accused" for n in sizes)
    print(f"\n| planted | {heads} | bound at {sizes[-1]:,}: median |")
    print(f"|---|{'---:|' * (2 * len(sizes) + 1)}")
    for name, (model, classes, spent) in PLANTED.items():
        cells = []
        for rows in sizes:
            found = [audited(model, classes, spent, rows, seed) for seed in range(audits)]
            bounds = [one.bound or 0.0 for one in found]
            cells.append(f"{sum(b > EPSILON for b in bounds)}/{audits}")
            cells.append(f"{sum(one.refuted for one in found)}/{audits}")
        print(f"| {name} | {' | '.join(cells)} | {np.median(bounds):.2f} |", flush=True)


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    honest(given[0] if given else 1000)
    planted(given[1] if len(given) > 1 else 5)
