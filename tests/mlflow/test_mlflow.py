"""An artifact as an MLflow model: loaded, served over HTTP, and in Spark."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from labeldp_runtime import Key, Randomizer

from tests.golden.write import HERE

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build/mlflow/bin/python"
PERSON = HERE / "persons/window.onnx"
PLAIN, JOINT = HERE / "plain/optimal-unbiased.onnx", HERE / "joint/top.onnx"
(COLUMN,) = Randomizer.load(PLAIN).label_columns
LABELS, IDS = [1, 5, 9], ["a", "b", "c"]
FOLDERS = (ROOT, ROOT / "verifier", ROOT / "runtime")


def run(*arguments, key=None):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, FOLDERS))}
    if key is not None:
        environment["LABELDP_KEY"] = str(key)
    command = [str(PYTHON), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, cwd=ROOT
    )


def labeldp(*arguments):
    return run("-m", "labeldp_compile.cli", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not (PYTHON.parents[1] / "installed").exists():
        reason = "needs MLflow: run tests/mlflow/install (see build/mlflow.log)"
        (pytest.fail if os.environ.get("LABELDP_ALL") else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("mlflow")
    for name, path, more in (
        ("plain", PLAIN, []),
        ("keyed", PLAIN, ["--id-column", "visit"]),
        ("joint", JOINT, ["--id-column", "visit"]),
        ("person", PERSON, ["--prepared"]),
    ):
        done = labeldp("export", "--to", "mlflow", path, "-o", folder / name, *more)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{folder / name}\n"
    Key.create(folder / "labels.key")
    return folder


@pytest.fixture(scope="module")
def found(folder):
    spark = ["spark"] if shutil.which("java") else []
    if not spark and os.environ.get("LABELDP_ALL"):
        pytest.fail("needs Java")
    script = Path(__file__).with_name("runs.py")
    done = run(script, folder, COLUMN, *spark, key=folder / "labels.key")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def drawn(folder, version=0):
    key = folder / "labels.key"
    return Randomizer.load(PLAIN, key=key, context=COLUMN)(LABELS, ids=IDS, version=version)


def test_a_loaded_model_gives_what_the_runtime_gives(folder, found):
    assert found["keyed"] == drawn(folder).tolist()
    assert found["version"] == drawn(folder, 3).tolist()
    assert found["plain"][0] != found["plain"][1]
    key = folder / "labels.key"
    joint = Randomizer.load(JOINT, key=key, context='["sold","value","code"]')
    names = joint.label_columns
    expected = joint({name: [None] * 3 for name in names}, ids=IDS)
    assert found["joint"] == {name: expected[name].tolist() for name in names}


def test_no_label_makes_an_error_or_changes_another(folder, found):
    first, _, last = drawn(folder).tolist()
    assert found["odd"] == [[first, last]] * len(found["odd"])
    wrong = ("no ids", "no label", "a label twice", "unequal")
    assert {found[name] for name in wrong} == {"MlflowException"}
    assert "a secret" not in "".join(found["errors"])


def test_it_is_served_over_http(folder, found):
    assert found["served"] == drawn(folder).tolist()
    assert "Failed to enforce" not in (folder / "server.log").read_text("utf-8")


def test_spark_needs_a_key(folder, found):
    if "spark" not in found:
        pytest.skip("needs Java")
    assert found["spark"] == drawn(folder).tolist()
    assert found["unkeyed"] == "EngineError"


def test_the_folder_holds_certificate_and_verdict_and_no_key(folder, found):
    data = folder / "keyed/data/data"
    names = {path.name for path in data.iterdir()}
    assert names == {
        *("artifact.onnx", "settings.json", "certificate.json", "verdict.json", "example.json")
    }
    assert json.loads((data / "verdict.json").read_text("utf-8"))["ok"] is True
    secret = (folder / "labels.key").read_text("utf-8").splitlines()[1].split()[1]
    for path in (folder / "keyed").rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()
    assert found["metadata"]["keyed"] is True
    assert found["inputs"] == [COLUMN, "visit"]


def test_a_keyed_model_without_its_key_is_not_loaded(folder):
    code = "import mlflow.pyfunc, sys; mlflow.pyfunc.load_model(sys.argv[1])"
    done = run("-c", code, folder / "keyed")
    assert done.returncode == 1
    assert "set LABELDP_KEY" in done.stderr


def test_an_artifact_with_a_rule_about_rows_needs_to_be_told_that_they_are_prepared(folder, found):
    done = labeldp("export", "--to", "mlflow", PERSON, "-o", folder / "no")
    assert done.returncode == 2 and "a person has at most 4 rows" in done.stderr
    assert not (folder / "no").exists()
    assert len(found["person"]) == 3
