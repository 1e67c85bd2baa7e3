"""Coverage of the 95 % intervals of ``labeldp runs --coefficients``.

Four tables of real data. Each draw makes fresh noise: a release of these labels, or private labels
by labeldp-runtime. An interval covers if the true coefficient lies inside, which numpy computes
from the true labels alone. For a population, each draw takes its rows anew from all rows of the
table, with replacement. Columns: coefficients with an interval (of all classes), their mean, least
and largest coverage, and the median half width. Writes JSON lines, and prints a markdown table.

    LABELDP_DATA=folder python benchmarks/coefficient_coverage.py [DRAWS [TABLE…]]
"""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import Randomizer
from labeldp_trainer.coefficients import OriginalColumns, ReleasedColumns, of_private
from labeldp_trainer.config import parse_config
from labeldp_trainer.data import load_data
from labeldp_trainer.data.labels import class_labels
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.methods.corrections import private_targets, rows_by_table
from labeldp_trainer.one_release.plan import planned
from labeldp_trainer.one_release.rows import PublicRows, Targets, label_steps
from labeldp_trainer.representations import represented
from labeldp_verify.opening import open_artifact

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fixtures.compiled import compile_text

DATA = Path(os.environ.get("LABELDP_DATA", "data"))
RESULTS = Path(__file__).parent / "results" / "coefficient_coverage.jsonl"
EPSILONS = (0.5, 1, 4)
PRIVATE_ROWS = 5_000  # the first of the table, for private labels: a draw takes more time
HEALTH = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]
TABLES = {
    "visits": ("randhie", "mdvis", (0, 24), HEALTH, []),
    "education": (
        *("adult_train", "education_num", (1, 16), ["age", "hours_per_week"]),
        ["sex", "marital_status", "workclass"],
    ),
    "income": (
        *("adult_train", "income_over_50k", ["no", "yes"]),
        *(["age", "education_num", "hours_per_week"], ["sex", "race"]),
    ),
    "race": (
        *("adult_train", "race", None),
        *(["age", "education_num", "hours_per_week"], ["sex", "income_over_50k"]),
    ),
}


class Table:
    """A table, its features as both methods see them, and its true labels."""

    def __init__(self, name, epsilon, rows, folder):
        """Read the first rows (None: all), and make both ways to private labels ready."""
        file, self.label, domain, numeric, categorical = TABLES[name]
        table = pq.read_table(DATA / f"{file}.parquet").slice(0, rows)
        for column in table.column_names:
            if pa.types.is_boolean(table[column].type):
                texts = pa.array(np.where(table[column].to_numpy(), "yes", "no"))
                table = table.set_column(table.column_names.index(column), column, texts)
        if domain is None:
            domain = sorted(table[self.label].unique().to_pylist())
        path = Path(folder) / "t.parquet"
        pq.write_table(table, path)
        self.numbers, self.domain, self.epsilon = isinstance(domain, tuple), domain, epsilon
        classes = "" if self.numbers else f", classes: {json.dumps(domain)}"
        ends = f", label_range: {list(domain)}" if self.numbers else ""
        self.loaded = parse_config(
            "version: 1\nname: coverage\n"
            f"data: {{kind: table, train: {path}, label: {self.label}, numeric: {numeric}, "
            f"categorical: {categorical}{classes}}}\n"
            f"loss: {'squared' if self.numbers else 'cross_entropy'}\n"
            f"method: {{kind: one_release, epsilon: {epsilon}, delta: 1e-5, goal: coefficients"
            f"{ends}}}\n"
        )
        self.dataset = load_data(self.loaded, (self.label,), ())
        self.classes = None if self.numbers else tuple(domain)
        labels = self.dataset.train.columns[self.label]
        if self.numbers:
            self.true = np.clip(np.asarray(labels, np.int64), *domain)
            self.targets = self.true[:, None].astype(float)
        else:
            self.true = class_labels(labels, self.classes, None)
            self.targets = np.eye(len(domain))[self.true]
        self.columns = OriginalColumns(self.dataset.encoder, self.dataset.train)
        self.plain = self.design(table, numeric, categorical)
        self.folder = Path(folder)

    def design(self, table, numeric, categorical):
        """[n, r] of the original columns, made without the trainer."""
        found = [np.ones(table.num_rows)]
        found += [table[name].to_numpy().astype(float) for name in numeric]
        for name in categorical:
            texts = table[name].to_pylist()
            own = [c for c in self.columns.columns if c.feature == name]
            codes = [None if c.category == "(missing)" else c.category for c in own]
            found += [np.array([text == code for text in texts], float) for code in codes]
        return np.column_stack(found)

    def releases(self):
        """The true coefficients, and a function that draws estimates."""
        vectors, representation = represented(self.loaded, self.dataset, self.folder / "run")
        features = np.asarray(vectors.train.features)
        rows = PublicRows(
            count=len(features),
            vectors=features,
            spectrum=representation.spectrum,
        )
        plan = planned(rows, self.loaded.config.method, self.classes, "label")
        steps = self.true
        if self.numbers:
            steps = label_steps(pa.array(self.true.astype(float)), *self.domain, None)
        count = None if self.numbers else len(self.classes)
        total = rows.sums(plan.weights, Targets(count, steps)).labels
        found = ReleasedColumns.of(self.columns, plan.weights, rows)
        weights = plan.weights.factors(rows).astype(float)[:, None]
        true = least_squares(self.plain * np.sqrt(weights), self.targets * np.sqrt(weights))

        def draw():
            release = dataclasses.replace(plan, statistic=noisy(total, plan.facts.sigma))
            return true, found.estimates(release)

        return draw

    def private(self, target):
        """The same of private labels: of these rows, or of rows that are drawn from them."""
        path = self.folder / "x.onnx"
        path.write_bytes(compile_text(self.spec()).model)
        artifact, randomizer = open_artifact(path), Randomizer.load(path)
        order = None if self.numbers else list(range(len(self.classes)))
        named = self.true if self.numbers else np.array(self.classes)[self.true]
        true = least_squares(self.plain, self.targets)
        random = np.random.default_rng(0)

        def draw():
            columns, labels = self.columns, named
            if target == "population":
                drawn = random.integers(0, len(named), len(named))
                part = self.dataset.train.take(drawn)
                columns, labels = OriginalColumns(self.dataset.encoder, part), named[drawn]
            parts, _ = rows_by_table(artifact, None, np.asarray(randomizer(labels)))
            found = of_private(columns, private_targets(parts, order), None)
            return true, self.in_order(found, columns)

        return draw

    def in_order(self, found, columns):
        """Estimates in the order of all columns. In drawn rows, a category can be missing, or
        another one can be the most frequent: its coefficients are another quantity then.
        """
        if columns.columns == self.columns.columns:
            return found
        place = {column: j for j, column in enumerate(columns.columns)}
        at = np.array([place.get(column, -1) for column in self.columns.columns])
        taken = {
            field.name: getattr(found, field.name)[at]
            for field in dataclasses.fields(found)
            if getattr(found, field.name) is not None
        }
        taken["known"] = taken["known"] & (at >= 0)
        return dataclasses.replace(found, **taken)

    def spec(self):
        """Of the artifact."""
        if self.numbers:
            domain = f"{{kind: integer, min: {self.domain[0]}, max: {self.domain[1]}}}"
            rest = "loss: squared\nmechanism: {kind: optimal_unbiased}\n"
            other = ""
        else:
            domain = f"{{kind: categorical, values: {json.dumps(self.domain)}}}"
            rest = "loss: zero_one\nmechanism: {kind: auto}\n"
            other = f", out_of_domain: {{default: {json.dumps(self.domain[0])}}}"
        return (
            f"version: 1\nname: x\nlabel: {{column: y, domain: {domain}{other}}}\ngoal: training\n"
            f"privacy: {{epsilon: {float(self.epsilon)}}}\nprior: {{kind: uniform}}\n{rest}"
        )


def least_squares(x, y):
    """[r, k], by singular values."""
    return np.linalg.lstsq(x, y, rcond=None)[0]


def coverage(draw, draws, target):
    """Of all coefficients that have an interval in at least half of the draws."""
    hits, there, widths = 0, 0, []
    for _ in range(draws):
        true, found = draw()
        margin = found.rows if target == "rows" else found.population
        shown = np.repeat((found.known & found.enough)[:, None], true.shape[1], axis=1)
        hits = hits + (shown & (np.abs(found.values - true) <= margin))
        there = there + shown
        widths.append(np.where(shown, margin, np.nan))
    often = there >= draws / 2
    shares = (hits / np.maximum(there, 1))[often]
    half = np.nanmedian(np.array(widths)[:, often], axis=0)
    return {
        "coefficients": int(often.sum()),
        "without": int((~often).sum()),
        "mean": float(shares.mean()),
        "least": float(shares.min()),
        "largest": float(shares.max()),
        "half_width": float(np.median(half)),
    }


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    names = sys.argv[2:] or list(TABLES)
    print("| table | labels | rows | ε | intervals for | coefficients | mean | least | largest |")
    print("|---|---|---:|---:|---|---:|---:|---:|---:|")
    for name in names:
        for epsilon in EPSILONS:
            for kind, target in (
                ("one release", "rows"),
                ("private labels", "rows"),
                ("private labels", "population"),
            ):
                with tempfile.TemporaryDirectory() as folder:
                    rows = None if kind == "one release" else PRIVATE_ROWS
                    table = Table(name, epsilon, rows, folder)
                    way = table.releases() if rows is None else table.private(target)
                    found = coverage(way, draws, target)
                    n = len(table.true)
                line = {"table": name, "labels": kind, "rows": n, "epsilon": epsilon}
                line |= {"target": target, "draws": draws, **found}
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                cells = " | ".join(f"{found[key]:.1%}" for key in ("mean", "least", "largest"))
                print(
                    f"| {name} | {kind} | {n:,} | {epsilon} | {target} | "
                    f"{found['coefficients']} | {cells} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
