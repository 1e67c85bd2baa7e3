"""A local Spark with two workers, in which a task may fail twice before its job does."""

import os
import subprocess
import sys
import warnings

import pytest

from runtime.tests.engines import cluster

OWN = "runtime.tests.engines"
REQUIRED = os.environ.get("LABELDP_ALL") == "1"  # set by .ci/run: nothing may be skipped there


def unavailable(reason):
    (pytest.fail if REQUIRED else pytest.skip)(f"Spark cannot be tested: {reason}")


def run_program(name, folder, *arguments, modules=()):
    """The lines that a program of this or another folder prints, which has a Spark of its own."""
    if (reason := cluster.missing(*modules)) is not None:
        unavailable(reason)
    done = subprocess.run(
        [sys.executable, "-m", name if "." in name else f"{OWN}.{name}", str(folder), *arguments],
        cwd=cluster.ROOT,
        env=cluster.environment(),
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="session")
def spark_folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("spark")
    for name in ("local", "events", "warehouse"):
        (root / name).mkdir()
    return root


@pytest.fixture(scope="session")
def spark(spark_folders):
    if cluster.java() is None:
        unavailable(cluster.NO_JAVA)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession
    except ImportError:
        unavailable("PySpark is not installed: pip install pyspark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or it looks up the name of the host
    # Without a console the JVM would still greet: log4j is told before it starts.
    logging = spark_folders / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n")
    quiet = f"-Dlog4j2.configurationFile={logging}"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": f"{cluster.QUICK_JVM} {quiet}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.python.authenticate.socketTimeout": "300s",  # of 15, on a busy machine
        "spark.network.timeout": "1200s",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(spark_folders / "local"),
        "spark.sql.warehouse.dir": str(spark_folders / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(spark_folders / "events"),
        "spark.eventLog.compress": "false",
        "spark.sql.session.timeZone": "UTC",
        # The same JVM serves clients that have none.
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    builder = SparkSession.builder.master("local[2,3]").appName("labeldp tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(spark):
    """Where that Spark answers to Spark Connect."""
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').server().getPort()}"
