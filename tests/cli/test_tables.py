"""Tables as people have them, through the commands."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeldp_compile.tabular.provenance import KEY
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

ROWS = [f"{i:03d};{i % 5};caf\u00e9;1.50" for i in range(500)]
TEXT = "id;y;name;cost\n" + "\n".join(ROWS) + "\n"


@pytest.fixture
def place(here):
    for name, changes in {
        "y": {},
        "half": {"domain": "{kind: real, min: 0, max: 4, points: 9}"},
        "noise": {"mechanism": "staircase"},
    }.items():
        domain = "{kind: real, min: 0, max: 4, points: 5}"
        usual = {"domain": domain, "mechanism": "randomized_response", "epsilon": 2}
        text = spec(name=name, **(usual | changes))
        (here / f"{name}.onnx").write_bytes(compile_text(text).model)
    (here / "semi.csv").write_bytes(TEXT.encode("latin-1"))
    labels = pa.table({"id": range(500), "y": [float(i % 5) for i in range(500)]})
    pq.write_table(labels, "t.parquet")
    (here / "parts").mkdir()
    for i in range(2):
        pq.write_table(labels.slice(250 * i, 250), here / "parts" / f"part-{i}.parquet")
    return here


def done(*arguments):
    result = labeldp(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(said, *arguments):
    result = labeldp(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.stderr and "Traceback" not in result.output
    return result


def test_a_folder_from_init_to_estimate(place):
    kind = ["--column", "y", "--kind", "integer", "--range", "0..4", "--epsilon", "2"]
    done("init", "parts", *kind, "--yes")
    done("compile", "y.yaml", "-o", "build")
    assert "500 rows" in done("randomize", "build/y.onnx", "parts", "-o", "out").stderr
    assert sorted(path.name for path in (place / "out").iterdir()) == [
        "part-0.parquet",
        "part-1.parquet",
    ]
    found = json.loads(done("estimate", "build/y.onnx", "out", "--json").stdout)
    assert found["groups"][0]["rows"] == 500
    refused("exists already, and folders are not", "randomize", "y.onnx", "parts", "-o", "out")
    refused(
        "exists already, and folders", "randomize", "y.onnx", "parts", "-o", "out", "--overwrite"
    )
    refused("is inside the input", "randomize", "y.onnx", "parts", "-o", "parts/out")
    refused("is inside the input", "randomize", "y.onnx", "parts", "-o", "out/../parts/_x")
    refused("write to a folder", "randomize", "y.onnx", "parts", "-o", "-")
    (place / "empty").mkdir()
    done("randomize", "y.onnx", "parts", "-o", "empty", "--quiet")
    assert len(list((place / "empty").iterdir())) == 2


def piped(data, *arguments):
    command = [sys.executable, "-m", "labeldp_compile.cli", "randomize", *map(str, arguments)]
    return subprocess.run(command, input=data, capture_output=True, check=False)


@pytest.mark.slow
def test_standard_input_and_output(place):
    done("keygen", "k.key")
    keyed = ["--key", "k.key", "--id-column", "id", "--delimiter", ";"]
    found = piped(TEXT.encode(), "y.onnx", "-", "-o", "-", *keyed)
    assert found.returncode == 0 and b"500 rows" in found.stderr
    (place / "utf8.csv").write_text(TEXT, encoding="utf-8")
    done("randomize", "y.onnx", "utf8.csv", "-o", "out.csv", *keyed)
    assert found.stdout == (place / "out.csv").read_bytes()
    assert not (place / "-").exists()
    # A pipe has no mode to copy: what comes of it is its owner's alone.
    piped(TEXT.encode(), "y.onnx", "-", "-o", "in.csv", *keyed)
    assert (place / "in.csv").stat().st_mode & 0o077 == 0
    bad = piped(TEXT.encode() + b"x;y\n", "y.onnx", "-", "-o", "-", *keyed)
    assert bad.returncode == 2 and b"-: line 502: has 2 cells" in bad.stderr
    assert b"the table on stdout is incomplete" in bad.stderr
    twice = piped(TEXT.encode() + ROWS[3].encode() + b"\n", "y.onnx", "-", "-o", "x.csv", *keyed)
    assert twice.returncode == 2 and b"have the same id" in twice.stderr
    assert not (place / "x.csv").exists()
    assert b"expected a .parquet or .csv" in piped(b"", "y.onnx", "x.txt", "-o", "-").stderr


@pytest.mark.parametrize(
    ("name", "kind"), [("y", pa.int64()), ("noise", pa.int64()), ("half", pa.float64())]
)
def test_whole_outputs_are_integers_whatever_was_drawn(place, name, kind):
    done("randomize", f"{name}.onnx", "t.parquet", "-o", "out.parquet")
    done("randomize", f"{name}.onnx", "t.parquet", "-o", "out.csv")
    assert pq.read_schema("out.parquet").field("y").type == kind
    cells = [line.split(",")[1] for line in (place / "out.csv").read_text().splitlines()[1:]]
    assert all(cell.lstrip("-").isdigit() for cell in cells) == (kind == pa.int64())


def test_a_private_file_says_what_made_it(place):
    done("randomize", "y.onnx", "t.parquet", "-o", "p.parquet")
    note = json.loads(pq.read_schema("p.parquet").metadata[KEY])
    entry = note["columns"]["y"]
    assert set(entry) == {"artifact_sha256", "epsilon_label", "written"}
    assert entry["epsilon_label"] == 2 and entry["written"].endswith("Z")
    done("estimate", "y.onnx", "p.parquet")
    error = refused(
        "another artifact made the private labels in 'y'", "estimate", "half.onnx", "p.parquet"
    )
    assert entry["artifact_sha256"][:16] in error.stderr and error.stderr.count("\n") == 1
    again = ["randomize", "y.onnx", "p.parquet", "-o"]
    refused("'y' already holds private labels", *again, "q.parquet")
    refused("'y' already holds private labels", *again, "q.parquet", "--add", "z")
    said = done(*again, "q.parquet", "--column", "id").stderr
    assert "was compiled for the column 'y' but randomizes 'id'" in said
    assert "compiled for" not in done(*again, "r.parquet", "--column", "id", "--quiet").stderr
    assert set(json.loads(pq.read_schema("q.parquet").metadata[KEY])["columns"]) == {"y", "id"}
    done("randomize", "y.onnx", "t.parquet", "-o", "z.parquet", "--add", "z")
    refused("another artifact", "estimate", "half.onnx", "z.parquet", "--column", "z")
    done("randomize", "y.onnx", "z.parquet", "-o", "y2.parquet")
    assert "compiled for" not in done("randomize", "y.onnx", "t.parquet", "-o", "s.csv").stderr


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b"\xff",
        b'{"format_version":"2.0","columns":{}}',
        b'{"format_version":"1.0","columns":{"y":{"artifact_sha256":"\x1b[2J"}}}',
        b'{"format_version":"1.0","columns":{"y":3}}',
    ],
)
def test_damaged_notes_are_one_error(place, note):
    table = pq.read_table("t.parquet").replace_schema_metadata({KEY: note})
    pq.write_table(table, "n.parquet")
    for command in (["estimate"], ["randomize", "-o", "o.csv"]):
        error = refused("its note on private labels", *command, "y.onnx", "n.parquet")
        assert error.stderr.count("\n") == 1 and "\x1b" not in error.stderr
