"""The command as a user runs it: outputs, messages, exit codes, and files that are never lost."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.fixtures.specs import spec

SPECS = Path(__file__).parents[2] / "specs"
PRIVATE = "{kind: private, data: visits.parquet}"
VISITS = {"name": "visits", "column": "visits", "epsilon": 2, "prior": PRIVATE}


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
    (tmp_path / "visits.yaml").write_text(spec(**VISITS), encoding="utf-8")
    result = labeldp("compile", tmp_path / "visits.yaml", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    return tmp_path


def test_streams_and_exit_codes(place):
    file, spec_file = place / "visits.onnx", place / "visits.yaml"
    result = labeldp("compile", spec_file, "-o", place / "quiet", "--quiet")
    assert (result.stdout, result.stderr) == (f"{place / 'quiet' / 'visits.onnx'}\n", "")
    report = json.loads(labeldp("verify", file, "--spec", spec_file, "--json").stdout)
    assert report["ok"] is True and {"format_version", "ok", "checks"} <= set(report)
    data, bad = file.read_bytes(), place / "bad.onnx"
    for content in (data + b"\0", data[:-1], b"", b"junk"):
        bad.write_bytes(content)
        assert labeldp("verify", bad).exit_code == 1
        assert json.loads(labeldp("verify", bad, "--json").stdout)["ok"] is False
    assert labeldp("verify", place).exit_code == 2
    other = place / "other.yaml"
    other.write_text(spec(**{**VISITS, "epsilon": 1}), encoding="utf-8")
    assert labeldp("verify", file, "--spec", other).exit_code == 1
    assert labeldp("verify", file, "--spec", place / "no.yaml").exit_code == 2
    assert json.loads(labeldp("schema").stdout)["title"] == "labeldp spec"


def test_what_a_test_seed_made_is_never_used(place):
    out = place / "seeded"
    labeldp("compile", place / "visits.yaml", "-o", out, "--insecure-test-seed", "7")
    assert labeldp("verify", out / "visits.onnx").exit_code == 1
    words = out / "visits.onnx", place / "visits.parquet", "-o", place / "o.parquet"
    assert labeldp("randomize", *words).exit_code == 1 and not (place / "o.parquet").exists()


BAD_SPECS = {
    "did you mean 'epsilon'?": {"privacy": "{epsilonn: 2}"},
    "above": {"domain": "{kind: integer, min: 9, max: 0}"},
    "0.000001": {"epsilon": 0},
    "finite": {"epsilon": ".nan"},
    "did you mean 'visits'?": {"column": "visit"},
    "needs numbers": {"column": "id"},
    "does not exist": {"prior": "{kind: private, data: nothing.parquet}"},
    "expected a .parquet or .csv": {"prior": "{kind: private, data: visits.yaml}"},
    "has no rows": {"prior": "{kind: private, data: none.parquet}"},
    "not a Parquet file": {"prior": "{kind: private, data: empty.parquet}"},
    "split: auto": {"epsilon": 0.01, "split": "paper"},
    "listed twice": {"values": ["a", "a"]},
}


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


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_compiles_and_verifies(tmp_path, path):
    result = labeldp("compile", path, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    verified = labeldp("verify", tmp_path / f"{path.stem}.onnx", "--spec", path)
    assert verified.exit_code == 0, verified.output
