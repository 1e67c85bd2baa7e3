"""The same in Spark SQL, and where its key is left there."""

from pathlib import Path
from urllib.parse import urlparse

import pytest

from runtime.tests.helpers import found_under
from tests.sql.files import FIVE, rows_of, rows_to_compare
from tests.sql.hosts import KEY, NAME, in_spark

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning:pyspark"
)


@pytest.mark.parametrize("name", FIVE)
def test_private_labels_are_those_of_the_python_reader(spark, name):
    rows = rows_of(FIVE[name], rows_to_compare(name))
    assert in_spark(spark, rows) == rows.python()


def test_the_key_is_in_no_plan_and_in_no_event(spark):
    rows = rows_of(FIVE["table"], 10)
    in_spark(spark, rows)
    plan = spark.sql(rows.sql("spark"))._jdf.queryExecution().toString()
    pad = bytes(byte ^ 0x36 for byte in KEY.secret)
    assert "sha2(" in plan
    assert not any(secret.hex().lower() in plan.lower() for secret in (KEY.secret, pad))
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(300_000)  # ms; all is written
    # Of the context, which other tests may have made: those of the session may differ.
    folder = spark.sparkContext.getConf().get("spark.eventLog.dir")
    events = Path(urlparse(folder).path)
    assert any(b"sha2(" in file.read_bytes() for file in events.rglob("*") if file.is_file())
    assert not found_under(events, KEY.secret) and not found_under(events, pad)


def test_columns_of_another_type_are_refused(spark):
    from pyspark.errors import PySparkException

    rows = rows_of(FIVE["window"], 10)
    in_spark(spark, rows)  # makes the views
    for types in (("double", "bigint"), ("string", "bigint"), ("bigint", "decimal(10, 2)")):
        label, own_id = (f"CAST(1 AS {kind})" for kind in types)
        given = spark.range(1).selectExpr(f"{label} AS label", f"{own_id} AS id")
        given.createOrReplaceTempView(f"{NAME}_input")
        wrong = "label" if types[0] != "bigint" else "id"
        with pytest.raises(PySparkException, match=f"labeldp: {wrong} must be BIGINT"):
            spark.sql(rows.sql("spark")).collect()


@pytest.mark.parametrize("count", [0, 2])
def test_a_label_is_drawn_with_one_key_or_with_none(spark, count):
    """Two keys, as while one is replaced by another, would be two draws of every label."""
    from pyspark.errors import PySparkException

    rows = rows_of(FIVE["window"], 10)
    in_spark(spark, rows)  # makes the views
    other = bytes(byte ^ 1 for byte in KEY.secret)
    keys = spark.createDataFrame([(bytearray(KEY.secret),), (bytearray(other),)], "key binary")
    keys.limit(count).createOrReplaceTempView(f"{NAME}_key")
    with pytest.raises(PySparkException, match="an id is NULL, or the key is not 32 bytes long"):
        spark.sql(rows.sql("spark")).collect()
