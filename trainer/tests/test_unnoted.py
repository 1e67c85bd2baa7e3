"""Private labels that no note says an artifact made: refused, or accepted and said everywhere."""

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.tabular.provenance import KEY, NOT_SHOWN, Provenance, write_note
from trainer.tests.command import labeldp, written
from trainer.tests.trainer_helpers import CONFIG, write_artifact, write_tables

HARDLY = "can hardly be private labels of numbers"


def with_method(method, text=CONFIG):
    method = "{kind: privatized, private_column: y, %s}" % method  # noqa: UP031  # braces
    return text.replace("{kind: none}", method).replace("epochs: 3", "epochs: 1")


def randomized(directory, suffix="parquet"):
    """A table of private labels, as ``labeldp randomize`` writes it."""
    write_tables(directory, 300)
    write_artifact(directory)
    name = f"train.{suffix}"
    labeldp("randomize", directory / "numbers.onnx", directory / "train.parquet",
            "-o", directory / "private.parquet")  # fmt: skip
    private = pq.read_table(directory / "private.parquet")
    if suffix == "csv":
        pa_csv.write_csv(private, directory / name)
    else:
        pq.write_table(private, directory / name)
    return with_method("artifact: numbers.onnx").replace("train.parquet", name)


def trained(directory, text, name="run", code=0):
    said = labeldp("train", written(directory, text, name), "-o", directory / name, code=code)
    assert (code == 0) == (directory / name).exists()
    return said


def test_a_note_shows_who_made_the_labels(tmp_path):
    text = randomized(tmp_path)
    assert NOT_SHOWN not in trained(tmp_path, text)
    assert NOT_SHOWN not in labeldp("runs", tmp_path / "run")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("true_labels", [False, True])
def test_without_a_note_it_is_refused_or_said_everywhere(tmp_path, suffix, true_labels):
    text = randomized(tmp_path, suffix)
    table = pq.read_table(tmp_path / "private.parquet").replace_schema_metadata(None)
    if true_labels:
        write_tables(tmp_path, 300)
        table = pq.read_table(tmp_path / "train.parquet")
    write = pa_csv.write_csv if suffix == "csv" else pq.write_table
    write(table, tmp_path / f"train.{suffix}")
    assert "unnoted: true" in trained(tmp_path, text, code=2)
    said = trained(tmp_path, text.replace("onnx}", "onnx, unnoted: true}"))
    verdict = said.splitlines()[-1]
    assert NOT_SHOWN in verdict and (HARDLY in verdict) == true_labels
    runs = json.loads(labeldp("runs", tmp_path / "run", "--json"))
    assert runs["runs"][0]["doubts"] == [NOT_SHOWN, *[HARDLY] * true_labels]
    labeldp("runs", tmp_path / "run", "--html", tmp_path / "runs.html")
    labeldp("report", tmp_path / "run", "-o", tmp_path / "run.html")
    for page in ("runs.html", "run.html"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert NOT_SHOWN in text and (HARDLY in text) == true_labels


@pytest.mark.parametrize("model", ["{kind: linear}", "{kind: interactions}"])
def test_true_labels_decide_no_exit_code(tmp_path, model):
    """Whatever is in the column, as long as the config declares it private."""
    write_tables(tmp_path, 200)
    write_artifact(tmp_path)
    text = with_method("artifact: numbers.onnx, unnoted: true").replace(
        "{kind: mlp, hidden: [8], embedding: 2, offset: 4.5}", model
    )
    if model == "{kind: interactions}":
        text = "\n".join(line for line in text.splitlines() if "optimizer" not in line)
        text = "\n".join(line for line in text.splitlines() if "training" not in line)
    for place, label in enumerate([0, 9, 4, None]):
        table = pq.read_table(tmp_path / "train.parquet")
        if label is not None:
            values = pa.array([label] * len(table), pa.int64())
            table = table.set_column(table.schema.names.index("y"), "y", values)
        pq.write_table(table, tmp_path / "train.parquet")
        assert HARDLY in trained(tmp_path, text, f"run-{place}").splitlines()[-1]


def test_a_note_of_another_artifact_is_never_accepted(tmp_path):
    text = randomized(tmp_path).replace("onnx}", "onnx, unnoted: true}")
    table = pq.read_table(tmp_path / "train.parquet")
    note = write_note({"y": Provenance("0" * 64, 0.1)})
    pq.write_table(table.replace_schema_metadata({KEY: note}), tmp_path / "train.parquet")
    assert "another artifact made" in trained(tmp_path, text, code=2)
