"""The command as a user runs it: outputs, messages, exit codes, and files that are never lost."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.build.pipeline import INSECURE
from labeldp_compile.cli import main

SPECS = Path(__file__).parents[2] / "specs"
SPEC = """
version: 1
name: visits
label:
  column: visits
  domain: {kind: integer, min: 0, max: 9}
loss: squared
privacy: {epsilon: 2.0}
prior: {kind: private, data: visits.parquet}
mechanism: {kind: rr_on_bins}
"""


def labeldp(*arguments, **options):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)


@pytest.fixture
def place(tmp_path):
    """A directory with a table, a spec and a compiled artifact."""
    generator = np.random.default_rng(0)
    table = pa.table(
        {
            "id": pa.array([f"{i:05}" for i in range(5000)]),
            "visits": pa.array(generator.poisson(2.0, 5000), mask=generator.random(5000) < 0.01),
            "cost": generator.random(5000),
        }
    )
    pq.write_table(table, tmp_path / "visits.parquet")
    pa_csv.write_csv(table, tmp_path / "visits.csv")
    (tmp_path / "visits.yaml").write_text(SPEC, encoding="utf-8")
    result = labeldp("compile", tmp_path / "visits.yaml", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    return tmp_path


def test_compile_prints_the_path_on_stdout_and_words_on_stderr(place):
    result = labeldp("compile", place / "visits.yaml", "-o", place / "again")
    assert result.exit_code == 0
    assert result.stdout == f"{place / 'again' / 'visits.onnx'}\n"
    assert "total ε           2 (declared)" in result.stderr
    quiet = labeldp("compile", place / "visits.yaml", "-o", place / "quiet", "--quiet")
    assert quiet.stderr == ""


def test_verify_in_words_and_as_json(place):
    result = labeldp("verify", place / "visits.onnx", "--spec", place / "visits.yaml")
    assert result.exit_code == 0, result.output
    assert "verified" in result.stdout and "(proved)" in result.stdout
    assert "(declared)" in result.stdout and "13 checks passed" in result.stdout
    report = json.loads(labeldp("verify", place / "visits.onnx", "--json").stdout)
    assert report["ok"] is True
    assert {"format_version", "ok", "checks"} <= set(report)


def test_verify_exit_codes(place):
    data = (place / "visits.onnx").read_bytes()
    bad = place / "bad.onnx"
    for content in (data + b"\0", data[:-1], b"", b"junk"):
        bad.write_bytes(content)
        result = labeldp("verify", bad)
        assert result.exit_code == 1
        assert "FAILED" in result.stdout and "Do not use" in result.stdout
        assert json.loads(labeldp("verify", bad, "--json").stdout)["ok"] is False
    for path in (place / "missing.onnx", place):
        result = labeldp("verify", path)
        assert result.exit_code == 2 and "cannot be read" in result.stderr
    assert labeldp("verify").exit_code == 2
    other = place / "other.yaml"
    other.write_text(SPEC.replace("epsilon: 2.0", "epsilon: 1.0"), encoding="utf-8")
    assert labeldp("verify", place / "visits.onnx", "--spec", other).exit_code == 1
    assert labeldp("verify", place / "visits.onnx", "--spec", place / "no.yaml").exit_code == 2


def test_a_test_seed_is_insecure_everywhere(place):
    spec, out = place / "visits.yaml", place / "seeded"
    result = labeldp("compile", spec, "-o", out, "--insecure-test-seed", "7")
    assert result.exit_code == 0 and "INSECURE" in result.stderr
    verified = labeldp("verify", out / "visits.onnx")
    assert verified.exit_code == 1
    assert f"FAILED secure       the certificate says: '{INSECURE}'\n" in verified.stdout
    randomized = labeldp(
        "randomize", out / "visits.onnx", place / "visits.parquet", "-o", place / "o.parquet"
    )
    assert randomized.exit_code == 1 and "INSECURE" in randomized.stderr
    assert not (place / "o.parquet").exists()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_randomize_replaces_the_label_and_keeps_the_rest(place, suffix):
    output = place / f"private.{suffix}"
    result = labeldp("randomize", place / "visits.onnx", place / f"visits.{suffix}", "-o", output)
    assert result.exit_code == 0, result.output
    assert "5,000 rows" in result.stderr and result.stdout == ""
    options = pa_csv.ConvertOptions(column_types={"id": pa.string()})
    read = pq.read_table if suffix == "parquet" else None
    before = pq.read_table(place / "visits.parquet")
    after = read(output) if read else pa_csv.read_csv(output, convert_options=options)
    assert after.schema.names == before.schema.names
    assert after["id"].equals(before["id"])
    assert after["cost"].to_pylist() == before["cost"].to_pylist()
    values = json.loads((place / "visits.certificate.json").read_text())
    assert len(set(after["visits"].to_pylist())) == values["outputs"]
    assert after["visits"].null_count == 0
    assert not list(place.glob(".*partial"))


def test_randomize_can_add_a_column_and_says_what_that_means(place):
    arguments = ["randomize", place / "visits.onnx", place / "visits.parquet"]
    output = place / "both.parquet"
    result = labeldp(*arguments, "-o", output, "--add", "private_visits")
    assert result.exit_code == 0
    assert "still holds the true labels" in result.stderr
    table = pq.read_table(output)
    assert table.schema.names == ["id", "visits", "cost", "private_visits"]
    assert table["visits"].equals(pq.read_table(place / "visits.parquet")["visits"])
    taken = labeldp(*arguments, "-o", place / "taken.parquet", "--add", "cost")
    assert taken.exit_code == 2 and not (place / "taken.parquet").exists()


def test_randomize_refuses_to_lose_anything(place):
    artifact, table = place / "visits.onnx", place / "visits.parquet"
    before = table.read_bytes()
    cases = {
        (table, table, "--overwrite"): "is the input",
        (table, place / "visits.csv"): "exists already",
        (table, place / "no" / "dir.parquet"): "there is no directory",
        (table, place / "out.xlsx"): "expected an output name that ends in .parquet",
        (place / "missing.parquet", place / "o.parquet"): "does not exist",
        (table, place / "o.parquet", "--column", "visit"): "did you mean 'visits'?",
        (table, place / "o.parquet", "--column", "id"): "the integer domain of the spec needs",
        (artifact, place / "o.parquet"): "expected a .parquet or .csv file",
    }
    for (source, output, *options), message in cases.items():
        result = labeldp("randomize", artifact, source, "-o", output, *options)
        assert result.exit_code == 2, result.output
        assert message in result.stderr
        assert "Traceback" not in result.stderr and result.stderr.count("\n") == 1
    assert table.read_bytes() == before
    assert not (place / "o.parquet").exists()
    assert not list(place.glob(".*partial"))


def test_damaged_tables_leave_no_output(place):
    data = (place / "visits.parquet").read_bytes()
    (place / "cut.parquet").write_bytes(data[: len(data) // 2])
    (place / "empty.csv").write_bytes(b"")
    rows = (place / "visits.csv").read_text().splitlines()
    (place / "ragged.csv").write_text("\n".join([*rows, '"x","secret"']) + "\n")
    for name in ("cut.parquet", "empty.csv", "ragged.csv"):
        result = labeldp("randomize", place / "visits.onnx", place / name, "-o", place / "o.csv")
        assert result.exit_code == 2, name
        assert "secret" not in result.stderr
        assert not (place / "o.csv").exists() and not list(place.glob(".*partial"))


def test_a_table_without_rows_is_refused_everywhere(place):
    """``compile`` is in BAD_SPECS; an empty part beside others is none."""
    empty = pq.read_schema(place / "visits.parquet").empty_table()
    (place / "parts").mkdir()
    for name in ("none.parquet", "parts/a.parquet", "parts/b.parquet"):
        pq.write_table(empty, place / name)
    (place / "none.csv").write_text("id,visits\n")
    artifact, output = place / "visits.onnx", place / "out"
    for name in ("none.parquet", "none.csv", "parts"):
        copy = output if name == "parts" else place / "out.csv"
        for command in (["randomize", "-o", copy], ["estimate"]):
            result = labeldp(command[0], artifact, place / name, *command[1:])
            assert result.exit_code == 2 and "has no rows" in result.stderr
            assert not copy.exists() and not list(place.glob(".*partial"))
    result = labeldp("randomize", artifact, "-", "-o", "-", input="id,visits\n")
    assert (result.exit_code, result.stdout) == (2, "")
    pq.write_table(pq.read_table(place / "visits.parquet"), place / "parts/b.parquet")
    assert labeldp("randomize", artifact, place / "parts", "-o", output).exit_code == 0
    assert pq.read_table(output / "a.parquet").schema.names == empty.schema.names
    assert labeldp("estimate", artifact, output).exit_code == 0


BAD_SPECS = {
    "unknown key": ("epsilon: 2.0", "epsilonn: 2.0", "did you mean 'epsilon'?"),
    "min above max": ("min: 0, max: 9", "min: 9, max: 0", "above"),
    "epsilon zero": ("epsilon: 2.0", "epsilon: 0", "greater than or equal to 0.000001"),
    "NaN": ("epsilon: 2.0", "epsilon: .nan", "finite"),
    "missing column": ("column: visits", "column: visit", "did you mean 'visits'?"),
    "wrong type": ("column: visits", "column: id", "needs numbers"),
    "missing data": ("visits.parquet", "nothing.parquet", "does not exist"),
    "no table": ("visits.parquet", "visits.yaml", "expected a .parquet or .csv"),
    "empty data": ("visits.parquet", "none.parquet", "has no rows"),
    "empty file": ("visits.parquet", "empty.parquet", "not a Parquet file"),
    "too few rows": ("epsilon: 2.0", "epsilon: 0.01, split: paper", "Use split: auto"),
    "duplicates": (
        "{kind: integer, min: 0, max: 9}",
        "{kind: categorical, values: [a, a]}",
        "is listed twice",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD_SPECS))
def test_bad_specs_exit_2_with_one_message_and_no_output(place, case):
    old, new, message = BAD_SPECS[case]
    schema = pq.read_schema(place / "visits.parquet")
    pq.write_table(schema.empty_table(), place / "none.parquet")
    (place / "empty.parquet").write_bytes(b"")
    spec = place / "bad.yaml"
    spec.write_text(SPEC.replace(old, new), encoding="utf-8")
    result = labeldp("compile", spec, "-o", place / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == "" and result.stderr.count("labeldp: ") == 1
    assert "Traceback" not in result.output
    assert not (place / "out").exists()


def test_compile_refuses_to_lose_an_artifact_before_it_spends(place):
    before = (place / "visits.onnx").read_bytes()
    (place / "visits.parquet").unlink()  # so that counting would fail
    result = labeldp("compile", place / "visits.yaml", "-o", place)
    assert result.exit_code == 2 and "--overwrite" in result.stderr
    assert (place / "visits.onnx").read_bytes() == before
    result = labeldp("compile", place / "visits.yaml", "-o", place / "visits.yaml")
    assert result.exit_code == 2 and "is not a directory" in result.stderr
    assert labeldp("compile", place / "visits.yaml").exit_code == 2


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_compiles_and_verifies(tmp_path, spec):
    result = labeldp("compile", spec, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    verified = labeldp("verify", tmp_path / f"{spec.stem}.onnx", "--spec", spec)
    assert verified.exit_code == 0, verified.output


def test_schema_prints_json():
    assert json.loads(labeldp("schema").stdout)["title"] == "labeldp spec"


@pytest.mark.slow
def test_killed_runs_leave_no_output_under_the_final_name(place):
    pq.write_table(
        pa.concat_tables([pq.read_table(place / "visits.parquet")] * 200),
        place / "large.parquet",
    )
    output = place / "killed.parquet"
    command = [sys.executable, "-c", "from labeldp_compile.cli import main; main()"]
    command += ["randomize", place / "visits.onnx", place / "large.parquet", "-o", output]
    for delay in (0.3, 0.5, 0.6, 0.7):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if output.exists():  # it was faster than the signal: then it is whole
            assert pq.read_metadata(output).num_rows == 1_000_000
            output.unlink()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert output.exists() and not list(place.glob(".*partial"))
