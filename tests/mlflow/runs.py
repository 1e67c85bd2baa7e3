"""What MLflow does with models of artifacts, in its own environment: prints JSON."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

PATIENCE = 600  # seconds until a server must be there
HOSTILE = [1, None, 99, "x", 1e300, True, {"a": 1}]


def frame(columns, ids=None):
    import pandas as pd

    return pd.DataFrame({**columns, **({} if ids is None else {"visit": ids})})


def name_of(model):
    """The label's column."""
    return next(iter(model.metadata.get_input_schema())).name


def loaded(folder, column):
    """Predictions of a model that was loaded: keyed, of another version, with odd labels."""
    import mlflow.pyfunc

    keyed = mlflow.pyfunc.load_model(str(folder / "keyed"))
    plain = mlflow.pyfunc.load_model(str(folder / "plain"))
    joint = mlflow.pyfunc.load_model(str(folder / "joint"))
    person = mlflow.pyfunc.load_model(str(folder / "person"))
    ids = ["a", "b", "c"]
    names = [one.name for one in joint.metadata.get_input_schema() if one.name != "visit"]
    found = {
        "keyed": keyed.predict(frame({column: [1, 5, 9]}, ids)).tolist(),
        "version": keyed.predict(frame({column: [1, 5, 9]}, ids), params={"version": 3}).tolist(),
        "plain": [plain.predict(frame({column: [5] * 200})).tolist() for _ in range(2)],
        "odd": [keyed.predict(frame({column: [1, odd, 9]}, ids)).tolist()[::2] for odd in HOSTILE],
        "joint": joint.predict(frame({name: [None] * 3 for name in names}, ids)).to_dict("list"),
        "person": person.predict(frame({name_of(person): [1, 5, 9]})).tolist(),
        "metadata": keyed.metadata.metadata["labeldp"],
        "inputs": [one.name for one in keyed.metadata.get_input_schema()],
    }
    twice = frame({column: ["a secret"], "x": [1]}, ["a"])
    twice.columns = [column, column, "visit"]
    found["errors"] = []
    for case, given in (
        ("no ids", frame({column: ["a secret"]})),
        ("no label", frame({"visit": ["a secret"]})),
        ("a label twice", twice),
        ("unequal", {column: ["a secret", 1], "visit": ["a"]}),
    ):
        try:
            keyed.predict(given)
        except Exception as error:
            found[case] = type(error).__name__
            found["errors"] += traceback.format_exception(error)
    return found


def served(folder, column):
    """What the server answers to JSON."""
    command = ["mlflow", "models", "serve", "-m", str(folder / "keyed"), "--env-manager", "local"]
    tools = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    log = folder / "server.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [*command, "-p", "0"],  # MLflow's own words for none
            env=environment | {"UVICORN_PORT": "0"},  # the system chooses one
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    rows = [[1, "a"], [5, "b"], [9, "c"]]
    body = {"dataframe_split": {"columns": [column, "visit"], "data": rows}}
    try:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"running on (http://\S+)", log.read_text("utf-8"))):
            if server.poll() is not None or time.monotonic() > end:
                return "no answer"
            time.sleep(0.5)
        request = urllib.request.Request(
            f"{found[1]}/invocations",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return [row[column] for row in json.load(answer)["predictions"]]
    except urllib.error.HTTPError as error:
        return error.read().decode()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def in_spark(folder, column):
    """The same models as functions of Spark."""
    import mlflow.pyfunc
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.createDataFrame([(1, "a"), (5, "b"), (9, "c")], f"{column} long, visit string")

    def drawn(name, columns):
        made = mlflow.pyfunc.spark_udf(
            spark, str(folder / name), result_type="double", env_manager="local"
        )
        asked = rows.select("visit", made(*columns).alias("private")).orderBy("visit")
        return [row.private for row in asked.collect()]

    found = {"spark": drawn("keyed", (column, "visit"))}
    try:
        found["unkeyed"] = drawn("plain", (column,))
    except Exception as error:
        found["unkeyed"] = "EngineError" if "EngineError" in str(error) else str(error)[:2000]
    spark.stop()
    return found


def main():
    """``runs.py FOLDER COLUMN``."""
    folder, column = Path(sys.argv[1]), sys.argv[2]
    found = loaded(folder, column)
    found["served"] = served(folder, column)
    if sys.argv[3:] == ["spark"]:
        found |= in_spark(folder, column)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
