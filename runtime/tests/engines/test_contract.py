"""One contract for all engines: private labels are those of one process, and none is drawn twice.

Each engine is asked for the private columns of the same tables. What only one of them does (lazy
frames, mentions of a function, retried tasks) stands in its own file.
"""

import warnings
from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import Key, Randomizer

from runtime.tests import group_files as groups
from runtime.tests import joint_files as joint
from runtime.tests import set_files as sets
from runtime.tests.engines.helpers import RESPONSE, SMALL, TEXT
from runtime.tests.helpers import TOO_FAR, chi_square, counts, file

pytestmark = pytest.mark.filterwarnings(
    "ignore::labeldp_runtime.ReplayWarning",
    "ignore::ResourceWarning",
    "ignore:.*fork.*:DeprecationWarning",
    "ignore::FutureWarning:pyspark",
)
SECRET = bytes(range(32))
ARROW = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_()}


class Case:
    """A table, and which of its columns are labels and groups.

    Attributes:
        columns: (kind, values) by name; the first is the id.
    """

    def __init__(self, data, labels, group_columns=None, ids=None, version=0):
        groups = group_columns or {}
        rows = len(next(iter(labels.values()))[1])
        self.data, self.version = data, version
        self.labels, self.groups = list(labels), list(groups)
        self.columns = {"id": ids or ("int", list(range(rows))), **labels, **groups}
        for name, (kind, values) in self.columns.items():
            if kind == "float":  # Spark takes no int for a double
                self.columns[name] = kind, [None if v is None else float(v) for v in values]

    def randomizer(self, *, keyed):
        return Randomizer(self.data, **({"key": Key(SECRET), "context": "c"} if keyed else {}))

    def table(self):
        return pa.table({n: pa.array(v, ARROW[kind]) for n, (kind, v) in self.columns.items()})

    def expected(self):
        """The private columns by their names, by one call of one randomizer."""
        randomizer, values = (
            self.randomizer(keyed=True),
            {n: v for n, (_, v) in self.columns.items()},
        )
        labels = {name: values[name] for name in self.labels}
        given = labels if len(labels) > 1 else next(iter(labels.values()))
        options = {"columns": values} if self.groups else {}
        answer = randomizer(given, ids=values["id"], version=self.version, **options)
        answer = answer if isinstance(answer, dict) else {self.names()[0]: answer}
        return {name: column.tolist() for name, column in answer.items()}

    def names(self):
        randomizer = self.randomizer(keyed=False)
        several = len(self.labels) > 1
        return randomizer.private_columns if several else self.labels


SQL = {"int": "bigint", "float": "double", "text": "string", "bool": "boolean"}


class Polars:
    def __init__(self, lazy):
        self.lazy = lazy

    def private(self, case, *, keyed):
        from labeldp_runtime.engines.polars import randomize

        frame = pl.from_arrow(case.table())
        label = case.labels if len(case.labels) > 1 else case.labels[0]
        options = {"ids": "id", "version": case.version} if keyed else {}
        given = frame.lazy() if self.lazy else frame
        private = randomize(given, label, case.randomizer(keyed=keyed), **options).lazy().collect()
        assert private["id"].equals(frame["id"])
        return {name: private[name].to_list() for name in case.names()}


class DuckDB:
    def private(self, case, *, keyed):
        import duckdb
        from labeldp_runtime.engines.duckdb import register

        with duckdb.connect() as connection:
            kind = {"int": "BIGINT", "text": "VARCHAR"}[case.columns["id"][0]]
            options = {"id_type": kind, "version": case.version} if keyed else {}
            register(connection, "p", case.randomizer(keyed=keyed), **options)
            rows = case.table().append_column("place", pa.array(range(len(case.table()))))
            connection.register("t", rows)
            arguments = [*case.labels, *(["id"] if keyed else []), *case.groups]
            call = f"p({', '.join(arguments)})"
            table = f"(SELECT place, {call} AS p FROM t)"
            columns = "p.*" if len(case.names()) > 1 else "p"
            got = connection.execute(f"SELECT {columns} FROM {table} ORDER BY place").fetchall()
        return dict(zip(case.names(), map(list, zip(*got, strict=True)), strict=True))


class Spark:
    def __init__(self, session, folder):
        self.session, self.folder = session, folder
        key, path = Key(SECRET), folder / "labels.key"
        lines = ("labeldp-key: 1", f"key: {SECRET.hex()}", f"fingerprint: {key.fingerprint}", "")
        path.write_text("\n".join(lines))
        path.chmod(0o600)
        self.key = Key.load(path)

    def private(self, case, *, keyed):
        from labeldp_runtime.engines.spark import randomize

        (self.folder / "x.onnx").write_bytes(case.data)
        schema = ", ".join(f"{n} {SQL[kind]}" for n, (kind, _) in case.columns.items())
        rows = zip(*(values for _, values in case.columns.values()), strict=True)
        rows = [(at, *row) for at, row in enumerate(rows)]
        df = self.session.createDataFrame(rows, f"place bigint, {schema}").repartition(2)
        label = case.labels if len(case.labels) > 1 else case.labels[0]
        keyed_by = {"key": self.key, "id_column": "id", "context": "c", "version": case.version}
        options = keyed_by if keyed else {}
        private = randomize(df, label, self.folder / "x.onnx", **options).sort("place").collect()
        return {name: [row[name] for row in private] for name in case.names()}


@pytest.fixture(params=["polars", "polars, lazy", "duckdb", "spark"])
def engine(request, tmp_path):
    if request.param == "spark":
        return Spark(request.getfixturevalue("spark"), tmp_path)
    return DuckDB() if request.param == "duckdb" else Polars("lazy" in request.param)


# Two draws without a key differ in all of these rows with a chance of 7e-24: Spark's have no seed.
NUMBERS = [0, 9, 4, None, 99, -(2**53), 5] * 60
REALS = [0.4, 2.5, None, float("nan"), float("inf"), -0.0, 3.5] * 20
WORDS = ["red", "green", None, "mauve", ""] * 20
AGES, WORKS, CODES = map(list, zip(*groups.ROWS, strict=True))
BY_GROUP = {"age": ("float", AGES), "work": ("text", WORKS), "code": ("int", CODES)}
GROUP_LABELS = {"y": ("int", [10 + i % 4 for i in range(len(AGES))])}
PAIRS = {
    "converted": ("text", ["né", "yes", None, "x", "yes", "ne\u0301"] * 50),
    "value": ("int", [0, 4, None, 99, 2, 3] * 50),
}
ODD = dict(zip(joint.NAMES["mixed"], (("float", "int", "float")), strict=True))
CASES = {
    "numbers": lambda: Case(RESPONSE, {"y": ("int", NUMBERS)}),
    "real numbers": lambda: Case(RESPONSE, {"y": ("float", REALS)}),
    "another version": lambda: Case(RESPONSE, {"y": ("int", NUMBERS)}, version=4),
    "ids of text": lambda: Case(
        RESPONSE, {"y": ("int", NUMBERS)}, ids=("text", [f"é {i}" for i in range(len(NUMBERS))])
    ),
    "text": lambda: Case(TEXT, {"y": ("text", WORDS)}),
    "groups": lambda: Case(groups.grouped(), GROUP_LABELS, BY_GROUP, version=2),
    "constants by group": lambda: Case(groups.named(), GROUP_LABELS, BY_GROUP),
    **{
        f"sets, {name}": lambda name=name: Case(
            sets.model(name), {"y": ("text" if "text" in name else "int", sets.COLUMNS[name] * 9)}
        )
        for name in sets.COLUMNS
    },
    "sets of one label": lambda: Case(
        sets.model("large ε, text"), {"y": ("text", [*sets.LOOK_ALIKES, None, "other"] * 20)}
    ),
    "several columns": lambda: Case(joint.model("text"), PAIRS),
    "sets of combinations": lambda: Case(joint.model("sets"), PAIRS),
    "three columns of numbers": lambda: Case(
        joint.model("mixed"), {n: (kind, joint.ODD["mixed"][0][n]) for n, kind in ODD.items()}
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_with_a_key_private_labels_are_those_of_one_process(engine, name):
    case = CASES[name]()
    assert engine.private(case, keyed=True) == case.expected()


def test_each_row_meets_the_table_of_its_group(engine):
    private = engine.private(CASES["constants by group"](), keyed=False)
    assert private["y"] == groups.tables(groups.ROWS)


@pytest.mark.parametrize("name", ["numbers", "several columns"])
def test_without_a_key_each_call_draws_again(engine, name):
    case = CASES[name]()
    first, second = (engine.private(case, keyed=False) for _ in range(2))
    for column in case.names():
        same = np.mean([a == b for a, b in zip(first[column], second[column], strict=True)])
        assert 0 < same < 0.9


@pytest.mark.parametrize("keyed", [False, True])
def test_frequencies_of_a_constant_label_match_the_certified_counts(engine, keyed):
    rows = 20_000
    case = Case(file(SMALL), {"y": ("int", [7] * rows)})
    seen = Counter(engine.private(case, keyed=keyed)["y"])
    assert chi_square(seen, counts(SMALL, 7), rows) < TOO_FAR


@pytest.mark.parametrize(
    ("ids", "message"), [([1, 2, 1], "the same id"), ([1, None, 2], "an id is null")]
)
def test_repeated_and_null_ids_are_refused(engine, ids, message):
    case = Case(RESPONSE, {"y": ("int", [1, 2, 3])}, ids=("int", ids))
    with warnings.catch_warnings(), pytest.raises(Exception, match=message):
        warnings.simplefilter("ignore")
        engine.private(case, keyed=True)


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("code", "float", 7.0),
        ("code", "bool", True),
        ("code", "text", "7"),
        ("work", "int", 7),
        ("age", "text", "18"),
    ],
)
def test_columns_that_cannot_hold_groups_are_refused_before_anything_is_drawn(
    engine, column, kind, value
):
    wrong = {**BY_GROUP, column: (kind, [value] * len(AGES))}
    with pytest.raises(Exception, match=r"expected .* as groups|No function matches"):
        engine.private(Case(groups.named(), GROUP_LABELS, wrong), keyed=False)
