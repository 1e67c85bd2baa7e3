"""The servers of other tests."""

from runtime.tests.engines.conftest import spark, spark_folders  # noqa: F401
from tests.ledger.conftest import _server, server  # noqa: F401
