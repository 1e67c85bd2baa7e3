"""Estimates are post-processing: rows are not counted by true labels that stand in the table."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_cli import labeldp as run
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped

RESPONSE = INTEGER_SPEC.replace("rr_on_bins", "randomized_response")


@pytest.fixture
def added(tmp_path):
    """An artifact, and a table with the private labels beside the true ones."""
    path, kept = tmp_path / "x.onnx", tmp_path / "kept.parquet"
    path.write_bytes(compile_text(RESPONSE).model)
    pq.write_table(pa.table({"y": [i % 5 for i in range(400)]}), tmp_path / "in.parquet")
    done = run("randomize", path, tmp_path / "in.parquet", "-o", kept, "--add", "private")
    assert done.exit_code == 0, done.output
    return path, kept


def test_true_labels_beside_private_ones_divide_no_rows(added):
    found = run("estimate", *added, "--column", "private", "--by", "y")
    assert found.exit_code == 2 and not found.stdout
    assert "'y' is the label" in found.stderr
    assert run("estimate", *added, "--column", "private").exit_code == 0


@pytest.mark.parametrize("command", ["estimate", "evaluate"])
def test_true_labels_beside_private_ones_are_not_taken_for_them(added, command):
    """All labels are outputs of randomized response, so that true counts came out, exactly."""
    path, kept = added
    predictions = [kept.with_name("in.parquet")] * (command == "evaluate")
    asked = [command, path, *predictions, kept, *["--model", "y"] * len(predictions)]
    found = run(*asked)
    assert found.exit_code == 2 and not found.stdout and found.stderr.count("\n") == 1
    assert "may hold true ones: the private ones are in 'private'" in found.stderr
    assert run(*asked, "--column", "private").exit_code == 0


def test_nor_in_parts_of_csv_whose_manifest_names_the_private_column(tmp_path):
    path, key, parts = tmp_path / "x.onnx", tmp_path / "k.key", tmp_path / "parts"
    path.write_bytes(compile_text(RESPONSE).model)
    rows = "".join(f"{i},{i % 5}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"id,y\n{rows}")
    keyed = ("--key", key, "--id-column", "id", "--append", "--add", "private")
    assert run("keygen", key).exit_code == 0
    done = run("randomize", path, tmp_path / "t.csv", "-o", parts, *keyed)
    assert done.exit_code == 0, done.output
    found = run("estimate", path, parts)
    assert found.exit_code == 2 and "the private ones are in 'private'" in found.stderr
    assert run("estimate", path, parts, "--column", "private").exit_code == 0


@pytest.mark.parametrize("command", ["estimate", "randomize"])
def test_the_column_that_the_artifact_was_compiled_for_is_no_group(tmp_path, command):
    path, table = tmp_path / "x.onnx", tmp_path / "t.parquet"
    path.write_bytes(file_of(DOMAIN, grouped()))
    rows = {"y": [10, 11], "private": [10.0, 11.0], "g": [7, -2]}
    pq.write_table(pa.table(rows), table)
    more = ("-o", tmp_path / "out.parquet") if command == "randomize" else ()
    asked = (command, path, table, "--column", "private", *more)
    found = run(*asked, "--group-column", "y")
    assert found.exit_code == 2 and "both the label and its group" in found.stderr
    assert not (tmp_path / "out.parquet").exists()
