"""Private labels in Apache Beam, which may compute a bundle twice."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from labeldp_runtime import Key, Randomizer

from runtime.tests.beam.cases import GROUP_VALUES, ODD, ROWS

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "build/beam/bin/python"
OLD = ROOT / "tests/golden"
ARTIFACTS = {
    "plain": OLD / "plain/optimal-unbiased.onnx",
    "groups": OLD / "groups/integers.onnx",
    "joint": OLD / "joint/top.onnx",
    "sets": OLD / "sets/subsets.onnx",
    "person": OLD / "persons/window.onnx",
}
SAME_ID = "2 rows have the same id, which would show whether their labels are equal"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not (PYTHON.parents[1] / "installed").exists():
        reason = "needs Apache Beam: run runtime/tests/beam/install (see build/beam.log)"
        (pytest.fail if os.environ.get("LABELDP_ALL") else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("beam")
    Key.create(folder / "labels.key")
    return folder


def python(*arguments, cwd=ROOT):
    folders = (ROOT, ROOT / "runtime", ROOT / "verifier")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [str(PYTHON), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, cwd=cwd
    )


@pytest.fixture(scope="module")
def found(folder):
    (folder / "forged.onnx").write_bytes(b"no artifact")
    artifacts = {name: str(path) for name, path in ARTIFACTS.items()}
    artifacts["forged"] = str(folder / "forged.onnx")
    done = python("-m", "runtime.tests.beam.runs", folder, json.dumps(artifacts))
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def drawn(folder):
    def of(name, labels, ids, version=0, context="y", **more):
        keyed = Randomizer.load(ARTIFACTS[name], key=folder / "labels.key", context=context)
        return keyed(labels, ids=ids, version=version, **more)

    return of


LABELS, IDS = ([row[name] for row in ROWS] for name in ("y", "visit"))


def test_labels_are_those_of_the_runtime_however_often_a_bundle_is_computed(found, drawn):
    expected = drawn("plain", LABELS, IDS).tolist()
    assert len({*expected}) > 2
    assert found["plain"] == found["again"] == found["fetched"] == expected
    assert found["written again"] == 4 * len(ROWS)
    assert found["version"] == drawn("plain", LABELS, IDS, version=2).tolist() != expected


def test_groups_sets_and_labels_of_several_columns(found, drawn):
    ids = [f"v{index}" for index in range(len(GROUP_VALUES))]
    labels = [index % 3 for index in range(len(GROUP_VALUES))]
    by_group = drawn("groups", labels, ids, columns={"code": GROUP_VALUES})
    assert found["groups"] == by_group.tolist()
    texts = [str(label) for label in LABELS]
    assert found["sets"] == drawn("sets", texts, IDS).tolist()
    names = Randomizer.load(ARTIFACTS["joint"]).label_columns
    private = drawn("joint", {name: [None] * 2 for name in names}, ["a", "b"], context="all")
    assert [{name: row[name] for name in names} for row in found["joint"]] == [
        {name: private[name].tolist()[index] for name in names} for index in range(2)
    ]


def test_the_private_field_comes_last_wherever_the_label_was(found):
    assert found["fields"] == ["visit", "day", "y"]
    assert found["added"] == ["visit", "y", "day", "mine"]


def test_no_label_makes_an_error_or_changes_the_shape_of_a_row(found, drawn):
    labels = [*(1000 + index for index in range(len(ODD))), 5000]
    assert len({json.dumps([name for name, _ in row]) for row in found["odd"]}) == 1
    expected = drawn("plain", [*ODD, None], labels).tolist()
    assert [dict(row)["y"] for row in found["odd"]] == expected


def test_times_and_windows_stay_and_ids_are_compared_over_all_windows(found, drawn):
    labels, refused = found["windows"]
    assert labels == drawn("plain", LABELS, IDS).tolist()
    assert SAME_ID in refused


def test_ids_of_an_unbounded_collection_are_not_looked_at(found, drawn):
    refused, labels = found["stream"]
    assert "give check_duplicates=False" in refused
    assert labels == drawn("plain", LABELS[:5], IDS[:5]).tolist()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("twice", SAME_ID),
        ("null", "an id is null"),
        ("taken", "a row has a field 'day' already"),
        ("no group", "a row has no field 'code'"),
    ],
)
def test_what_fails_a_pipeline_before_anything_is_written(found, case, words):
    error, written = found[case]
    assert words in error
    assert not written


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("carried", "KeyFileError: the function that fetches the key contains the key itself"),
        ("no file", "KeyFileError: this key came from no file"),
        ("label is id", "IdError: 'y' cannot be both the label and its id"),
        ("several", "IdError: a label of several columns has no default context"),
        ("group is label", "GroupError: 'y' cannot be both the label and a group"),
        ("forged", "Error: "),
        ("person", "UnpreparedRowsError: "),
    ],
)
def test_what_no_pipeline_is_made_of(found, case, words):
    assert words in found[case]


def test_the_key_is_not_in_the_plan(found):
    assert found["secret in the plan"] is False


def test_the_page(folder):
    """The page's own pipeline, beside its two files."""
    page = (ROOT / "docs/beam.md").read_text("utf-8")
    code = re.search(r"```python\n(import apache_beam.*?)```", page, re.DOTALL)[1]
    work = folder / "page"
    work.mkdir()
    (work / "visits.onnx").write_bytes(ARTIFACTS["plain"].read_bytes())
    Key.create(work / "labels.key")
    lines = [json.dumps({"visit_id": f"v{index}", "mdvis": index % 9}) for index in range(100)]
    (work / "visits.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    done = python("-c", code, cwd=work)
    assert done.returncode == 0, done.stderr[-3000:]
    (out,) = work.glob("private*")
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    keyed = Randomizer.load(work / "visits.onnx", key=work / "labels.key", context="mdvis")
    ids = [row["visit_id"] for row in rows]
    labels = [int(name[1:]) % 9 for name in ids]
    assert len({*ids}) == 100
    assert [row["mdvis"] for row in rows] == keyed(labels, ids=ids).tolist()
