"""What must not leave the driver: the key stays out of Spark, and exact counts out of reach."""

import base64
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import GroupError, Key, KeyFileError, LabelError, Randomizer

from runtime.tests.engines.helpers import RESPONSE
from runtime.tests.helpers import found_under

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning:pyspark"
)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.onnx").write_bytes(RESPONSE)
    return tmp_path / "x.onnx"


def test_the_key_is_in_no_file_plan_or_event_of_spark(spark, spark_folders, path, tmp_path):
    from labeldp_runtime.engines.spark import randomize

    key = Key.create(tmp_path / "labels.key")
    df = spark.range(0, 3000, 1, 3).selectExpr("id", "id % 10 AS y")
    private = randomize(df, "y", path, key=key, id_column="id")
    private.write.parquet(str(tmp_path / "out"))
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(300_000)  # ms; all is written
    events = [file for file in (spark_folders / "events").rglob("*") if file.is_file()]
    assert any(b"RandomizeLabels" in file.read_bytes() for file in events)  # the plan is there
    assert not found_under(spark_folders, key.secret)
    query = private._jdf.queryExecution().toString()
    assert "RandomizeLabels" in query
    assert key.secret.hex() not in query and str(tmp_path / "labels.key") not in query
    assert found_under(tmp_path, key.secret) == [tmp_path / "labels.key"]


def test_a_broadcast_would_write_the_key_to_disk(spark, spark_folders):
    """Why keys are not broadcast; and the search above does find what is there."""
    secret = bytes(range(1, 33))
    broadcast = spark.sparkContext.broadcast(secret)
    try:
        assert found_under(spark_folders / "local", secret)
    finally:
        broadcast.destroy()


def test_the_key_can_come_from_a_function_that_runs_on_the_executors(spark, path, tmp_path):
    from labeldp_runtime.engines.spark import randomize

    key = Key.create(tmp_path / "labels.key")
    calls, file = str(tmp_path / "calls"), str(tmp_path / "labels.key")

    def fetch():
        import os

        with Path(calls).open("a") as log:
            log.write(f"{os.getpid()}\n")
        return Key(Key.load(file).secret)  # a key without a path, as secret managers give it

    df = spark.range(0, 3000, 1, 6).selectExpr("id", "id % 10 AS y")
    private = randomize(df, "y", path, key=fetch, id_column="id").sort("id").collect()
    alone = Randomizer.load(path, key=key, context="y")
    expected = alone(np.arange(3000) % 10, ids=np.arange(3000))
    assert [row["y"] for row in private] == expected.tolist()
    called = (tmp_path / "calls").read_text().split()
    assert len(called) == len(set(called)) > 1  # once a process, whatever the number of tasks


@pytest.mark.parametrize("form", ["bytes", "hex", "HEX", "base64", "key"])
def test_a_function_that_carries_the_key_is_refused(spark, path, form):
    from labeldp_runtime.engines.spark import randomize

    secret = Key(bytes(range(100, 132))).secret
    texts = {"hex": secret.hex(), "HEX": secret.hex().upper(), "bytes": secret}
    carried = {**texts, "base64": base64.b64encode(secret).decode(), "key": None}[form]
    decoders = {"hex": bytes.fromhex, "HEX": bytes.fromhex, "base64": base64.b64decode}
    decode, whole = decoders.get(form, bytes), Key(secret)
    fetch = (lambda: whole) if form == "key" else (lambda: Key(decode(carried)))
    df = spark.range(3).selectExpr("id", "id AS y")
    with pytest.raises((KeyFileError, TypeError), match=r"contains the key|cannot be pickled"):
        randomize(df, "y", path, key=fetch, id_column="id")


def test_an_executor_with_another_key_is_refused(spark, path, tmp_path):
    from labeldp_runtime.engines.spark import randomize

    key = Key.create(tmp_path / "labels.key")
    df = spark.range(3).selectExpr("id", "id AS y")
    private = randomize(df, "y", path, key=key, id_column="id")
    (tmp_path / "labels.key").unlink()
    Key.create(tmp_path / "labels.key")
    with pytest.raises(Exception, match=r"KeyFileError: .*another key"):
        private.collect()
    (tmp_path / "labels.key").unlink()
    with pytest.raises(Exception, match=r"KeyFileError: .*labels\.key: cannot be read"):
        private.collect()


def test_counts_keep_nulls_and_one_group_of_nan_and_zero(spark):
    from labeldp_runtime.engines.spark import label_counts

    numbers = spark.sql(
        "SELECT EXPLODE(ARRAY(double('nan'), double('nan'), -0.0D, 0.0D, NULL, NULL, NULL, 2.5D)) y"
    )
    table = label_counts(numbers, "y")
    assert table.schema.names == ["y", "n"] and table.schema.field("n").type == pa.int64()
    found = {str(y): n for y, n in zip(*table.to_pydict().values(), strict=True)}
    assert found == {"nan": 2, "0.0": 2, "None": 3, "2.5": 1}
    words = spark.sql("SELECT EXPLODE(ARRAY('Red', 'red', 'red', NULL)) AS w")
    text = words.selectExpr("w COLLATE UTF8_LCASE AS `a.b`")
    rows = label_counts(text, "a.b", counts="rows").to_pylist()
    assert {row["a.b"]: row["rows"] for row in rows} == {"Red": 1, "red": 2, None: 1}
    with pytest.raises(LabelError, match="no column 'z'"):
        label_counts(numbers, "z")
    with pytest.raises(LabelError, match="another name"):
        label_counts(numbers, "y", counts="y")


def test_counts_by_group_have_a_row_for_each_combination(spark, tmp_path):
    from labeldp_runtime.engines.spark import label_counts, write_label_counts

    rows = spark.sql(
        "SELECT id % 3 AS y, IF(id % 2 = 0, NULL, 'Red') COLLATE UTF8_LCASE AS `a.b`, "
        "IF(id < 6, double('nan'), -0.0D) AS x FROM range(60)"
    ).unionAll(spark.sql("SELECT 0L, 'red' COLLATE UTF8_LCASE, 0.0D"))
    table = label_counts(rows, "y", group_columns=["a.b", "x"], counts="rows")
    assert table.schema.names == ["a.b", "x", "y", "rows"]
    assert table.schema.field("rows").type == pa.int64()
    found = {(g, str(x), y): n for g, x, y, n in zip(*table.to_pydict().values(), strict=True)}
    assert table.num_rows == 13 and sum(found.values()) == 61
    for y in range(3):
        for group in (None, "Red"):
            assert found[group, "nan", y] == 1 and found[group, "0.0", y] == 9
    assert found["red", "0.0", 0] == 1
    path = tmp_path / "counts.parquet"
    assert write_label_counts(rows, "y", path, group_columns=("x",)) == 61
    assert pq.read_table(path).schema.names == ["x", "y", "n"]
    for given, message in [
        (["z"], "no column 'z'"),
        (["y"], "is named twice"),
        (["x", "x"], "is named twice"),
    ]:
        with pytest.raises(GroupError, match=message):
            label_counts(rows, "y", group_columns=given)
    with pytest.raises(LabelError, match="another name"):
        label_counts(rows, "y", group_columns=["x"], counts="x")
    with pytest.raises(TypeError, match="list of names"):
        label_counts(rows, "y", group_columns="x")


def test_counts_are_in_a_file_that_others_cannot_read(spark, tmp_path):
    from labeldp_runtime.engines.spark import write_label_counts

    df = spark.range(0, 300_000, 1, 3).selectExpr(
        "CASE WHEN id % 10 = 9 THEN NULL WHEN id % 10 = 8 THEN 99 ELSE id % 4 END AS y"
    )
    path = tmp_path / "counts.parquet"
    assert write_label_counts(df, "y", path) == 300_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["counts.parquet"]
    rows = [(row["y"], row["n"] // 100) for row in pq.read_table(path).to_pylist()]
    assert sorted(rows, key=str) == [(0, 600), (1, 600), (2, 600), (3, 600), (99, 300), (None, 300)]
