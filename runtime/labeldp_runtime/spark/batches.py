"""Larger Arrow batches between Spark and Python, for as long as an action runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE_BATCH = 100_000
_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


@contextmanager
def large_batches(spark: SparkSession, rows: int = LARGE_BATCH) -> Iterator[None]:
    """Let Spark pass ``rows`` rows at a time, instead of 10,000, in all actions inside.

    Put the *action* inside (write, collect, …), since nothing runs before it. The setting is the
    session's: other queries of the session use it too, until it is reset at the end. A batch of all
    columns must fit in memory, once in the JVM and once in Python.
    """
    before = spark.conf.get(_SETTING)
    spark.conf.set(_SETTING, str(rows))
    try:
        yield
    finally:
        spark.conf.set(_SETTING, before)
