"""The pages on engines: what they import and name exists."""

import importlib
import inspect
import re

import numpy as np
import pytest
from labeldp_runtime import Key, Randomizer

from labeldp_compile.spec import parse_spec
from runtime.tests import set_files
from runtime.tests.engines.helpers import RESPONSE
from tests.docs.pages import text_of
from tests.fixtures.specs import spec

PAGE = "".join(map(text_of, ("engines.md", "spark.md", "polars.md", "duckdb.md")))


def test_the_imports_work_and_the_options_exist():
    pytest.importorskip("pyspark")
    imports = re.findall(r"^from (labeldp_runtime[.\w]*) import (.+)$", PAGE, re.M)
    assert len(imports) == 5
    for module, names in imports:
        for name in names.split("#")[0].split(","):
            assert hasattr(importlib.import_module(module), name.strip())
    spark = inspect.signature(importlib.import_module("labeldp_runtime.engines.spark").randomize)
    for option in ("id_column", "key", "add_as", "require", "check_duplicates", "context"):
        assert option in spark.parameters and option in PAGE
    counts = importlib.import_module("labeldp_runtime.engines.spark").write_label_counts
    polars = importlib.import_module("labeldp_runtime.engines.polars").randomize
    for function in (counts, polars):
        assert "group_columns" in inspect.signature(function).parameters
    assert "group_columns" in spark.parameters and PAGE.count("group_columns=") == 2


def test_counts_by_group_of_other_engines_are_those_of_spark(tmp_path, inside):
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    inside(tmp_path)
    rows = [(20, "é", 1), (20, "é", 1), (None, "é", None), (None, "é", None), (30, None, 1)]
    frame = pl.DataFrame(rows, ["age", "work", "visits"], orient="row")
    wanted = {(20, "é", 1, 2), (None, "é", None, 2), (30, None, 1, 1)}
    (query,) = re.findall(r"^```sql\n(COPY .*?)^```$", PAGE, re.M | re.S)
    (call,) = re.findall(r"^frame\.group_by.*$", PAGE, re.M)
    with duckdb.connect() as connection:
        connection.register("visits", frame.to_arrow())
        for write in (lambda: connection.execute(query), lambda: eval(call, {"frame": frame})):
            write()
            counted = pl.read_parquet("counts.parquet")
            assert counted.columns == ["age", "work", "visits", "n"]
            assert set(counted.rows()) == wanted
            (tmp_path / "counts.parquet").unlink()


def test_sets_are_joined_with_their_members():
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    randomizer = Randomizer(set_files.model("all subsets of text"))
    (block,) = re.findall(r"^```python\n(pairs = .*?)^```$", PAGE, re.M | re.S)
    with duckdb.connect() as connection:
        names = {"randomizer": randomizer, "pl": pl, "connection": connection}
        exec(block, names)
        private = pl.DataFrame({"kind": randomizer(["red"] * 100)})
        joined = private.unique().join(names["sets"], on="kind").group_by("kind").all()
        for number, members in joined.iter_rows():
            assert sorted(members) == sorted(randomizer.members(number))
        (rows,) = connection.execute("SELECT count(*) FROM sets").fetchone()
        assert rows == randomizer.membership.sum()


def test_a_stream_of_duckdb_is_drawn_once():
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    (block,) = re.findall(
        r"^```python\n(import pyarrow as pa\n\nrows = .*?)^```$", PAGE, re.M | re.S
    )
    keyed = Randomizer(RESPONSE, key=Key(bytes(range(32))), context="n")
    labels, ids = np.arange(300_000) % 10, np.arange(300_000)
    with duckdb.connect() as connection:
        visits = pa.table({"visit_id": ids, "n": labels, "x": labels})
        connection.register("given", visits)
        connection.execute("CREATE TABLE visits AS FROM given")
        code = block.replace(
            "COPY drawn TO 'private.parquet'", "CREATE TABLE private AS FROM drawn"
        )
        exec(code, {"connection": connection, "randomizer": keyed})
        found = connection.execute("FROM private ORDER BY visit_id").fetchnumpy()
        assert list(found) == ["visit_id", "n", "x"] and np.array_equal(found["x"], labels)
        assert np.array_equal(found["n"], keyed(labels, ids=ids))
        with pytest.raises(duckdb.Error, match="consumed"):
            connection.execute("FROM drawn").fetchall()


def test_the_prior_is_a_valid_one():
    (prior,) = re.findall(r"^prior: .*$", PAGE, re.M)
    assert parse_spec(spec(prior=None) + prior + "\n").prior.counts == "n"
