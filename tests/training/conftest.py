"""Spark, for training on it."""

from runtime.tests.engines.conftest import spark, spark_folders  # noqa: F401
