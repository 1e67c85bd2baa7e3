"""The Spark helpers through Spark Connect, where this process has no JVM.

A program, since a process has only one Spark: ``python -m tests.engines.connect_runs FOLDER``
starts a server and prints a JSON object of what came out.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import (
    DuplicateIdError,
    EngineError,
    Key,
    KeyFileError,
    Randomizer,
    ReplayWarning,
)
from pyspark import SparkContext
from pyspark.sql import SparkSession

from benchmarks.shared.cluster import QUICK_JVM, Cluster, environment, wait_for
from tests.engines.helpers import RESPONSE, found_under

ROWS = 3000
CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.enabled"


def serve(it: Cluster) -> str:
    """Start a Connect server with a local Spark; its address."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(it.folder / "events"),
        "spark.local.dir": str(it.folder / "local"),
        "spark.python.authenticate.socketTimeout": "300s",
        "spark.network.timeout": "1200s",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": f"{QUICK_JVM} {it.logging()}",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    it.start_class("Connect", *command, "spark-internal", memory="700m")
    port = wait_for(lambda: it.said("Connect", r"Connect server started at.*:(\d+)"), "the server")
    return f"sc://127.0.0.1:{port[0]}"


def refusal(call: Any, kind: type[Exception]) -> str:
    """The message of the error that a call raises."""
    try:
        call()
    except kind as error:
        return str(error)
    return ""


def labels(private: Any) -> list[float]:
    """The private labels, in the order of the ids."""
    return [row["y"] for row in private.sort("id").collect()]


def facts(it: Cluster, spark: Any) -> dict[str, Any]:
    """What the helpers do here; the test says what they should do."""
    from labeldp_runtime.spark import label_counts, randomize

    path, file = it.folder / "x.onnx", it.folder / "secret" / "labels.key"
    path.write_bytes(RESPONSE.model)
    file.parent.mkdir()
    key = Key.create(file)
    df = spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 10 AS y")
    private = randomize(df, "y", path, key=key, id_column="id")
    ids = np.arange(ROWS)
    expected = Randomizer.load(path, key=key, context="y")(ids % 10, ids=ids).tolist()
    plan = private._plan.to_proto(spark.client).SerializeToString()
    (it.folder / "plan").write_bytes(plan)
    fetched = randomize(df, "y", path, key=lambda: Key(Key.load(file).secret), id_column="id")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReplayWarning)
        fresh = randomize(df, "y", path)
    twice = df.unionAll(df)
    found = {
        "module": type(df).__module__,
        "version": spark.version,
        "keyed": labels(private) == expected,
        "fetched": labels(fetched) == expected,
        "warned": [str(each.message) for each in caught if each.category is ReplayWarning],
        "fresh_agree": float(np.mean(np.array(labels(fresh)) == np.array(labels(fresh)))),
        "counts": label_counts(df, "y").num_rows,
        "in_plan": b"RandomizeLabels" in plan,
        "twice": refusal(
            lambda: randomize(twice, "y", path, key=key, id_column="id"), DuplicateIdError
        ),
        "no_file": refusal(
            lambda: randomize(df, "y", path, key=Key(bytes(32)), id_column="id"), KeyFileError
        ),
    }
    spark.conf.set(CHECKSUMS, "false")
    found["refused"] = refusal(lambda: randomize(df, "y", path), EngineError)
    options = {"key": key, "id_column": "id", "check_duplicates": False}
    found["keyed_then"] = randomize(df, "y", path, **options).columns
    found["jvm"] = SparkContext._gateway is not None or SparkContext._jvm is not None
    found["secret_in"] = [str(each) for each in found_under(it.folder, key.secret)]
    found["events"] = [str(each) for each in (it.folder / "events").iterdir()]
    return found


def main(place: Path) -> None:
    """Print the facts."""
    os.environ.update(environment())
    it = Cluster(place)
    (place / "events").mkdir()
    try:
        spark = SparkSession.builder.remote(serve(it)).getOrCreate()
        print(json.dumps(facts(it, spark)), flush=True)  # noqa: T201
        spark.stop()
    finally:
        it.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
