"""Six tables with a label to predict: their rows, features and specs, and files for the trainer."""

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from shared.tables import ADULT, CENSUS, HOUSING, VISITS, RealTable

from labeldp_compile import compile_spec

ROWS = 50_000  # at most, to train on
NUMBERS, CLASSES, SETS = "optimal_unbiased", "randomized_response", "auto"
SPEC = """
version: 1
name: artifact
goal: training
label: {{column: {label}, domain: {domain}, out_of_domain: {outside}}}
loss: {loss}
privacy: {{epsilon: {epsilon}, split: auto}}
prior: {prior}
mechanism: {{kind: {mechanism}}}
"""


@dataclass(frozen=True)
class Task:
    """A table, its label and the loss.

    ``ends`` are those of a number, in ``unit``; without them, the label is a class. ``left_out``
    are columns that are no features. The first of ``metrics`` is the loss. ``block``: how many
    rows that follow one another stay together; 1 if rows have nothing to do with one another.
    """

    title: str
    real: RealTable
    label: str
    left_out: tuple[str, ...]
    loss: str
    metrics: tuple[str, ...]
    ends: tuple[int, int] | None = None
    unit: int = 1
    block: int = 1


TASKS = {
    "weeks": Task(
        "weeks worked", CENSUS, CENSUS.label, CENSUS.left_out, "squared", ("MSE",), (0, 52)
    ),
    "hours": Task(
        "hours per week", ADULT, ADULT.label, ADULT.left_out, "squared", ("MSE",), (1, 99)
    ),
    "house": Task(
        "house values, $10,000", HOUSING, HOUSING.label, (), "squared", ("MSE",), (1, 50), 10_000
    ),
    "visits": Task(
        "doctor visits", VISITS, VISITS.label, (), "poisson", ("Poisson loss",), (0, 77), 1, 100
    ),
    "education": Task(
        "education, 16 classes", ADULT, "education",
        (*ADULT.left_out, "education_num"), "cross_entropy", ("log loss", "accuracy"),
    ),
    "income": Task(
        "income over $50,000", CENSUS, "income_over_50k",
        ("instance_weight",), "cross_entropy", ("log loss", "AUC"),
    ),
}  # fmt: skip


class Data:
    """The rows of a task, and a folder with train.parquet, test.parquet and artifacts."""

    def __init__(self, task, source, folder):
        """Read the files of ``source``, and write those of the folder."""
        self.task, self.folder = task, folder
        whole, trainable = task.real.read(source)
        self.parts = dict(zip(("train", "test"), _split(whole, trainable, task.block), strict=True))
        place = whole.schema.get_field_index(task.label)
        labels = {name: _labels(part[task.label], task) for name, part in self.parts.items()}
        self.classes = None
        if task.ends is None:
            self.classes = sorted(set(labels["train"].to_pylist() + labels["test"].to_pylist()))
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in self.parts.items():
            self.parts[name] = part.set_column(place, task.label, labels[name]).unify_dictionaries()
            pq.write_table(self.parts[name], folder / f"{name}.parquet")
        names = [n for n in whole.schema.names if n not in (task.label, *task.left_out)]
        self.categorical = [
            n
            for n in names
            if n in task.real.codes or pa.types.is_dictionary(whole.schema.field(n).type)
        ]
        self.numeric = [n for n in names if n not in self.categorical]
        self.missing = [n for n in self.numeric if pc.any(pc.is_null(whole[n])).as_py()]

    @property
    def rows(self):
        """How many are trained on."""
        return self.parts["train"].num_rows

    def config(self, missing, *, classes):
        """The part ``data`` of a config, with numbers that are missing in rows or without."""
        found = {
            "kind": "table",
            "train": str(self.folder / "train.parquet"),
            "test": str(self.folder / "test.parquet"),
            "label": self.task.label,
            "numeric": [n for n in self.numeric if missing or n not in self.missing],
            "categorical": self.categorical,
        }
        if classes and self.classes is not None:
            found["classes"] = self.classes
        return json.dumps(found)

    @cached_property
    def features(self):
        """[n, p] for either part, NaN if missing; categories are codes and come last."""
        columns = {name: [] for name in self.parts}
        for column in self.numeric:
            for name, part in self.parts.items():
                columns[name].append(pc.cast(part[column], pa.float64()).to_numpy())
        for column in self.categorical:
            texts = {name: pc.cast(part[column], pa.string()) for name, part in self.parts.items()}
            both = pa.concat_arrays([chunk for text in texts.values() for chunk in text.chunks])
            known = pc.unique(pc.drop_null(both)).sort()
            for name, text in texts.items():
                codes = pc.index_in(text, value_set=known, skip_nulls=True)
                columns[name].append(pc.cast(codes, pa.float64()).to_numpy())
        return {name: np.stack(found, axis=1) for name, found in columns.items()}

    @property
    def coded(self):
        """The places of the columns that are codes."""
        return list(range(len(self.numeric), len(self.numeric) + len(self.categorical)))

    def codes(self, labels):
        """[n] numbers, or places of classes."""
        if self.classes is None:
            return np.asarray(labels, np.float64)
        return np.searchsorted(self.classes, np.asarray(labels))

    def labels(self, part):
        """[n] true labels as they are in the table."""
        return self.parts[part][self.task.label].to_numpy()

    def artifact(self, mechanism, epsilon, seed):
        """Where the artifact of a mechanism is; a prior of numbers is drawn anew for every seed."""
        folder = self.folder / f"{mechanism}-{epsilon}-{seed}"
        if not folder.exists():
            spec = self.folder / "spec.yaml"
            spec.write_text(self._spec(mechanism, epsilon), encoding="utf-8")
            compile_spec(spec).write(folder)
        return folder / "artifact.onnx"

    def _spec(self, mechanism, epsilon):
        if self.classes is None:
            low, high = self.task.ends
            more = {
                "domain": f"{{kind: integer, min: {low}, max: {high}}}",
                "outside": "clamp",
                "loss": "squared",  # of Poisson, too: labels must keep their mean
                "prior": "{kind: private, data: train.parquet}",
            }
        else:
            more = {
                "domain": f"{{kind: categorical, values: {json.dumps(self.classes)}}}",
                "outside": f"{{default: {json.dumps(self.classes[0])}}}",
                "loss": "zero_one",
                "prior": "{kind: uniform}",
            }
        return SPEC.format(label=self.task.label, epsilon=epsilon, mechanism=mechanism, **more)


def halves(count, block, share, generator):
    """A share of the rows, and the others; rows of a block stay together."""
    order = generator.permutation(-(-count // block))
    cut = len(order) * share[0] // share[1]
    rows = np.arange(count)
    return [
        rows[np.isin(rows // block, part)] if block > 1 else part
        for part in (order[:cut], order[cut:])
    ]


def _split(whole, trainable, block):
    """Rows to train on and rows to test on, the same for every seed."""
    generator = np.random.default_rng(0)
    if trainable is None:
        train, test = halves(whole.num_rows, block, (4, 5), generator)
        return whole.take(pa.array(train)), whole.take(pa.array(test))
    train = whole.slice(0, trainable)
    if trainable > ROWS:
        chosen = generator.choice(trainable, ROWS, replace=False)
        train = train.take(pa.array(np.sort(chosen)))
    return train, whole.slice(trainable)


def _labels(column, task):
    """Whole numbers of the task's unit, or text."""
    if pa.types.is_dictionary(column.type):
        return pc.cast(column, pa.string())
    if task.ends is None:
        return pc.cast(column, pa.int64())
    values = np.rint(column.to_numpy() / task.unit).astype(np.int64)
    return pa.array(values.clip(*task.ends))
