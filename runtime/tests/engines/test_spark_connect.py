"""Spark Connect: the same labels, warnings and refusals, where the client has no JVM."""

import json

import pytest
from labeldp_runtime import Key

from runtime.tests.engines.conftest import run_program
from runtime.tests.engines.helpers import RESPONSE
from runtime.tests.helpers import found_under

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning:pyspark"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connect")
    (folder / "x.onnx").write_bytes(RESPONSE)
    return folder


@pytest.fixture(scope="module")
def found(connect, place):
    return json.loads(
        run_program("connect_runs", place, connect, modules=("grpc", "grpc_status"))[-1]
    )


def test_labels_with_a_key_are_those_of_one_process(found):
    assert found["module"].startswith("pyspark.sql.connect") and not found["jvm"]
    assert found["keyed"] and found["fetched"]


def test_the_key_does_not_travel(found, place, spark, spark_folders):
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(300_000)  # ms; all is written
    assert found["in_plan"] and list((spark_folders / "events").iterdir())
    file = place / "secret" / "labels.key"
    secret = Key.load(file).secret
    assert found_under(place, secret) == [file] and not found_under(spark_folders, secret)


def test_without_a_key_it_is_warned_of_and_drawn_for_each_action(found):
    assert len(found["warned"]) == 1 and "spends ε of every label again" in found["warned"][0]
    assert 0 < found["fresh_agree"] < 0.5


def test_the_settings_of_the_server_decide_what_is_refused(found):
    assert "orderIndependentChecksum.enabled is off" in found["refused"]
    assert "Use a key" in found["refused"]
    assert found["keyed_then"] == ["id", "y"]


def test_ids_keys_and_counts_are_looked_at(found):
    assert "2 rows have the same id" in found["twice"]
    assert "came from no file" in found["no_file"]
    assert found["counts"] == 10
