"""The Spark helpers through Spark Connect, where this process has no JVM.

A program, since a process has only one Spark: ``python -m runtime.tests.engines.connect_runs``
with a FOLDER and a URL asks the server there to randomize with FOLDER/x.onnx, and prints a JSON
object of what came out.
"""

from __future__ import annotations

import json
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

ROWS = 3000
CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.enabled"


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


def facts(place: Path, spark: Any) -> dict[str, Any]:
    """What the helpers do here; the test says what they should do."""
    from labeldp_runtime.engines.spark import label_counts, randomize

    path, file = place / "x.onnx", place / "secret" / "labels.key"
    file.parent.mkdir()
    key = Key.create(file)
    df = spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 10 AS y")
    private = randomize(df, "y", path, key=key, id_column="id")
    ids = np.arange(ROWS)
    expected = Randomizer.load(path, key=key, context="y")(ids % 10, ids=ids).tolist()
    plan = private._plan.to_proto(spark.client).SerializeToString()
    (place / "plan").write_bytes(plan)
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
    return found


def main(place: Path, url: str) -> None:
    """Print the facts."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    print(json.dumps(facts(place, spark)), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
