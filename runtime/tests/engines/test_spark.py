"""Randomizing a Spark DataFrame: what comes out, retries, keys, and what is refused."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pytest
from labeldp_runtime import (
    ArtifactError,
    EngineError,
    IdError,
    Key,
    KeyFileError,
    LabelError,
    Policy,
    PolicyError,
    Randomizer,
    ReplayWarning,
)

from runtime.tests import group_files as groups
from runtime.tests import joint_files as joint
from runtime.tests.engines.helpers import RESPONSE

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning:pyspark"
)
ROWS = 2000
FRESH = pytest.mark.filterwarnings("ignore::labeldp_runtime.ReplayWarning")


@pytest.fixture
def randomize(spark):
    from labeldp_runtime.engines.spark import randomize

    return randomize


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.onnx").write_bytes(RESPONSE)
    return tmp_path / "x.onnx"


@pytest.fixture
def key(tmp_path):
    return Key.create(tmp_path / "labels.key")


@pytest.fixture
def labels(spark):
    """2,000 rows in four partitions: id, y = id mod 10, more."""
    rows = spark.range(0, ROWS, 1, 4)
    return rows.selectExpr("id", "id % 10 AS y", "concat('row ', id) AS name")


def column(df, name="y"):
    return [row[name] for row in df.sort("id").collect()]


def more(i):
    return {"k": float(i)}, bytes([i]), None if i % 2 else f"é{i}", (i,)


def test_only_the_column_changes(randomize, spark, path, key):
    rows = [
        (i, i % 10, datetime.datetime(2024, 2, 29, 12, 0, i), [i, None], Decimal(i) / 8, *more(i))
        for i in range(40)
    ]
    schema = (
        "id bigint NOT NULL, y int, t timestamp, a array<int>, d decimal(20,3), "
        "m map<string,double>, b binary, s string, x struct<`v.w`: int>"
    )
    df = spark.createDataFrame(rows, schema).withColumnRenamed("y", "a.`label`")
    private = randomize(df, "a.`label`", path, key=key, id_column="id")
    assert private.columns == df.columns
    for before, after in zip(df.schema, private.schema, strict=True):
        if before.name == "a.`label`":
            assert after.dataType.simpleString() == "double"
        else:
            assert after == before
    before, after = df.sort("id").collect(), private.sort("id").collect()
    for old, new in zip(before, after, strict=True):
        assert old[:1] + old[2:] == new[:1] + new[2:] and 0 <= new[1] <= 9


@FRESH
def test_without_a_key_a_warning_says_that_each_action_spends_again(randomize, labels, path):
    with pytest.warns(ReplayWarning, match="write the result to storage once") as caught:
        private = randomize(labels, "y", path)
    assert caught[0].filename == __file__
    first, second = column(private), column(private)
    assert 0 < sum(a == b for a, b in zip(first, second, strict=True)) < ROWS / 2


@FRESH
def test_a_filter_keeps_the_rows_that_it_shows(randomize, labels, path):
    """A plain UDF is computed twice here, once for the filter and once for the result."""
    private = randomize(labels, "y", path, add_as="p")
    kept = private.where("p > 4").select("id", "p", "p").collect()
    assert 0.2 * ROWS < len(kept) < 0.8 * ROWS
    assert all(row[1] > 4 and row[1] == row[2] for row in kept)
    assert private.where("p > 4 AND y = 0").where("p < 6").count() < ROWS / 10
    assert private.where("y = 0").count() == ROWS / 10 and private.count() == ROWS


@FRESH
def test_partitions_and_workers_draw_words_of_their_own(randomize, spark, path):
    rows = spark.range(0, 4 * 500, 1, 4).selectExpr("id", "id % 10 AS y")
    private = np.array(column(randomize(rows, "y", path))).reshape(4, 500)
    assert len(np.unique(private, axis=0)) == 4
    for i in range(4):
        for j in range(i):
            assert (private[i] == private[j]).mean() < 0.5


def attempts(randomize, df, tmp_path, path, **options):
    """What two attempts at one task saw, of which the first failed; and the result."""
    folder = str(tmp_path)

    def fail_once(batches):
        from pathlib import Path

        import pyarrow as pa
        from pyspark import TaskContext

        table = pa.Table.from_batches(list(batches))
        task = TaskContext.get()
        seen = Path(folder) / f"{task.partitionId()}-{task.attemptNumber()}.seen"
        seen.write_text(repr(table.column("y").to_pylist()))
        if task.partitionId() == 1 and task.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")
        yield from table.to_batches()

    private = randomize(df, "y", path, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        result = private.mapInArrow(fail_once, private.schema).collect()
    assert not (tmp_path / "1-2.seen").exists()
    seen = [(tmp_path / f"1-{attempt}.seen").read_text() for attempt in (0, 1)]
    return seen, [row["y"] for row in sorted(result)]


def test_a_task_that_is_retried_gives_the_same_labels_with_a_key(
    randomize, labels, tmp_path, path, key
):
    seen, result = attempts(randomize, labels, tmp_path, path, key=key, id_column="id")
    assert seen[0] == seen[1]
    expected = Randomizer.load(path, key=key, context="y")(
        np.arange(ROWS) % 10, ids=np.arange(ROWS)
    )
    assert result == expected.tolist()


def test_a_task_that_is_retried_draws_again_without_a_key(randomize, labels, tmp_path, path):
    with pytest.warns(ReplayWarning, match="retry"):
        seen, result = attempts(randomize, labels, tmp_path, path)
    assert seen[0] != seen[1] and len(result) == ROWS


@pytest.mark.parametrize("kind", ["date", "string", "array<int>", "binary"])
def test_unusable_label_columns_are_refused_before_anything_runs(randomize, spark, path, kind):
    df = spark.sql(f"SELECT CAST(NULL AS {kind}) AS y")
    with pytest.raises(LabelError, match="expected numbers as labels, got a column of"):
        randomize(df, "y", path)


def test_a_stream_cannot_be_looked_through(randomize, spark, path, key):
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "value % 10 AS y")
    with pytest.raises(IdError, match="ids of a stream cannot be checked in advance"):
        randomize(stream, "y", path, key=key, id_column="id")
    private = randomize(stream, "y", path, key=key, id_column="id", check_duplicates=False)
    assert private.isStreaming and private.columns == ["id", "y"]


def test_misuse_is_refused(randomize, labels, path, key, tmp_path):
    for options in ({"id_column": "id"}, {"context": "y"}, {"version": 1}):
        with pytest.raises(IdError, match="need key="):
            randomize(labels, "y", path, **options)
    with pytest.raises(IdError, match="needs id_column"):
        randomize(labels, "y", path, key=key)
    with pytest.raises(IdError, match="version"):
        randomize(labels, "y", path, key=key, id_column="id", version=-1)
    with pytest.raises(IdError, match="both the label and its id"):
        randomize(labels, "y", path, key=key, id_column="y")
    with pytest.raises(IdError, match="no column 'i'; did you mean 'id'"):
        randomize(labels, "y", path, key=key, id_column="i")
    with pytest.raises(LabelError, match="no column 'Y'"):
        randomize(labels, "Y", path)
    with pytest.raises(LabelError, match="a column 'name', and Spark ignores case"):
        randomize(labels, "y", path, add_as="NAME")
    with pytest.raises(LabelError, match="several columns called 'y'"):
        randomize(labels.select("y", "y"), "y", path)
    with pytest.raises(ArtifactError, match="cannot be read"):
        randomize(labels, "y", tmp_path / "absent.onnx")
    with pytest.raises(PolicyError, match="deploy the pinned file"):
        randomize(labels, "y", path, require=Policy(sha256="0" * 64))
    with pytest.raises(KeyFileError, match="came from no file"):
        randomize(labels, "y", path, key=Key(bytes(32)), id_column="id")
    with pytest.raises(KeyFileError, match="must return a Key"):
        randomize(labels, "y", path, key=lambda: bytes(32), id_column="id")


@FRESH
def test_large_batches_last_as_long_as_the_action(spark, randomize, labels, path):
    from labeldp_runtime.engines.spark import large_batches

    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(setting)
    private = randomize(labels.coalesce(1), "y", path)
    with pytest.raises(ZeroDivisionError), large_batches(spark, 777):
        assert spark.conf.get(setting) == "777" and len(private.collect()) == ROWS
        raise ZeroDivisionError
    assert spark.conf.get(setting) == before


class Engine:
    """A session that says what it is: a version, and settings that are not the defaults."""

    def __init__(self, version="4.3.0", **settings):
        self.version, self.conf = version, self
        self.settings = {"enabled": "true", "enableFullRetryOnMismatch": "true", **settings}

    def get(self, name, default=None):
        """As Spark's conf: a default that is given beats one that is known."""
        value = self.settings.get(name.removeprefix("spark.sql.shuffle.orderIndependentChecksum."))
        return default if value is None else value


OLD = [
    "3.5.9",
    "4.0.0",
    "4.0.1",
    "4.0.5",
    "4.1.4",
    "4.1.4-amzn-0",
    "4.2.0-preview4",
    "4.2.0-SNAPSHOT",
    "4.2.0.dev4",
    "4.2.0rc1",
    "4.2",
    "14.3.x-scala2.12",  # a vendor's own numbering
    "x",
    "client.4",
]


@pytest.mark.parametrize("version", OLD)
def test_sparks_that_do_not_notice_other_labels_are_refused_without_a_key(spark, version):
    from labeldp_runtime.engines.spark import refuse_without_rollback

    with pytest.raises(EngineError, match=f"Spark {version}, and the first .* Use a key"):
        refuse_without_rollback(Engine(version))


@pytest.mark.parametrize("version", ["4.2.0", "4.2.1", "4.3.0", "4.10.0-SNAPSHOT", "5.0.0"])
def test_sparks_that_notice_are_not_refused_unless_they_are_told_not_to_look(spark, version):
    from labeldp_runtime.engines.spark import refuse_without_rollback

    refuse_without_rollback(Engine(version))
    refuse_without_rollback(Engine(version, **{"spark.shuffle.manager": "sort"}))
    for name in ("enabled", "enableFullRetryOnMismatch"):
        with pytest.raises(EngineError, match=f"{name} is off"):
            refuse_without_rollback(Engine(version, **{name: "false"}))
    with pytest.raises(EngineError, match=r"push\.enabled is on"):
        refuse_without_rollback(Engine(version, **{"spark.shuffle.push.enabled": "true"}))
    with pytest.raises(EngineError, match=r"manager is org\.example\.Remote, which labeldp"):
        refuse_without_rollback(Engine(version, **{"spark.shuffle.manager": "org.example.Remote"}))


def test_the_refusal_is_made_by_randomize_and_spares_keys(spark, randomize, labels, path, key):
    setting = "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
    spark.conf.set(setting, "false")
    try:
        with pytest.raises(EngineError, match="draw others twice, without a message"):
            randomize(labels, "y", path)
        assert randomize(labels, "y", path, key=key, id_column="id").columns == labels.columns
    finally:
        spark.conf.unset(setting)


@pytest.fixture
def by_group(spark, tmp_path):
    """Rows by group in two partitions, and the path of an artifact whose tables have names."""
    (tmp_path / "named.onnx").write_bytes(groups.named())
    (tmp_path / "grouped.onnx").write_bytes(groups.grouped())
    rows = [(i, 10 + i % 4, *row) for i, row in enumerate(groups.ROWS)]
    schema = "id bigint, y int, age double, work string, code bigint"
    return spark.createDataFrame(rows, schema).repartition(2)


@pytest.fixture
def pairs(spark, tmp_path):
    """Labels of two columns in two partitions, and the same as a mapping."""
    for name in ("text", "sets"):
        (tmp_path / f"{name}.onnx").write_bytes(joint.model(name))
    labels = {
        "converted": ["né", "yes", None, "x", "yes", "ne\u0301"] * 50,
        "value": [0, 4, None, 99, 2, 3] * 50,
    }
    rows = zip(range(300), labels["value"], ["z"] * 300, labels["converted"], strict=True)
    schema = "id bigint, value int, z string, converted string"
    return spark.createDataFrame(list(rows), schema).repartition(2), labels


def test_each_label_column_gives_way_to_its_private_one(randomize, pairs, tmp_path, key):
    df, labels = pairs
    path, options = tmp_path / "text.onnx", {"key": key, "id_column": "id", "context": "pair"}
    alone = Randomizer.load(path, key=key, context="pair")(labels, ids=range(300))
    private = randomize(df, ["converted", "value"], path, **options)
    types = {"id": "bigint", "value": "double", "z": "string", "converted": "string"}
    assert dict(private.dtypes) == types and private.columns == df.columns
    assert not any(private.schema[name].nullable for name in ("converted", "value"))
    for name in ("converted", "value"):
        assert column(private, name) == alone[name].tolist()
    assert column(private, "z") == ["z"] * 300
    renamed = df.toDF("id", "a.b", "z", "value")
    sources = {"converted": "value", "value": "a.b"}
    names = {"converted": "c", "value": "v"}
    added = randomize(renamed, sources, path, add_as=names, **options)
    assert added.columns == ["id", "a.b", "z", "value", "c", "v"]
    assert column(added, "c") == alone["converted"].tolist()
    assert column(added, "v") == alone["value"].tolist()
    assert column(added, "a.b") == labels["value"]
    assert column(added, "value") == labels["converted"]


@FRESH
def test_the_number_of_a_set_takes_the_place_of_all_label_columns(randomize, pairs, tmp_path, key):
    df, labels = pairs
    path, options = tmp_path / "sets.onnx", {"key": key, "id_column": "id", "context": "pair"}
    alone = Randomizer.load(path, key=key, context="pair")(labels, ids=range(300))
    private = randomize(df, ["converted", "value"], path, **options)
    assert private.dtypes == [("id", "bigint"), ("z", "string"), ("private_label", "bigint")]
    assert column(private, "private_label") == alone.tolist()
    fresh = randomize(df, ["converted", "value"], path, add_as="p")
    assert fresh.columns == [*df.columns, "p"] and column(fresh, "converted") == labels["converted"]
    assert len(set(column(fresh, "p"))) > 5
