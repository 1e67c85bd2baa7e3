"""``labeldp keygen`` and ``labeldp randomize --key``: repeatable, exact, and refusing misuse."""

import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Key, Randomizer

from labeldp_compile.tabular import csv_file, parquet_file
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

N = 20_000  # more than two batches


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(parquet_file, "BATCH_ROWS", (1 << 13, 1 << 13))
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 1 << 18)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with an artifact, a key and tables."""
    directory = tmp_path_factory.mktemp("keyed")
    (directory / "a.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
    generator = np.random.default_rng(0)
    ids = generator.permutation(N)
    table = pa.table(
        {
            "number": ids,
            "name": pa.array([f"né {i}" for i in ids]),
            "constant": pa.array([7] * N),
            "gap": pa.array([None if i == 10_000 else i for i in range(N)]),
            "ratio": generator.random(N),
            "y": pa.array(generator.poisson(2.0, N), mask=generator.random(N) < 0.01),
        }
    )
    pq.write_table(table, directory / "t.parquet")
    pa_csv.write_csv(table, directory / "t.csv")
    assert labeldp("keygen", directory / "k.key").exit_code == 0
    return directory


def keyed(place, source, output, *options, id_column="number"):
    arguments = ["--key", place / "k.key", "--id-column", id_column, "--overwrite", *options]
    return labeldp("randomize", place / "a.onnx", place / source, "-o", place / output, *arguments)


def private(path, name="y"):
    return pq.read_table(path)[name].to_numpy()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_rerun_gives_the_identical_file(place, suffix):
    names = [f"one.{suffix}", f"two.{suffix}"]
    for name in names:
        result = keyed(place, f"t.{suffix}", name)
        assert result.exit_code == 0, result.output
        said = " ".join(result.stderr.split())
        assert "the same inputs (labels, ids, key, context, version and artifact) gives" in said
        assert "A changed label gets a new output, which spends ε = " in said
        assert "if labels change, raise --version" in said
        assert Key.load(place / "k.key").fingerprint in result.stderr
    assert (place / names[0]).read_bytes() == (place / names[1]).read_bytes()


def test_the_file_holds_what_the_runtime_gives(place):
    table = pq.read_table(place / "t.parquet")
    key = Key.load(place / "k.key")
    for options, context, version, name in [
        ([], "y", 0, "y"),
        (["--add", "noisy"], "noisy", 0, "noisy"),
        (["--context", "visits", "--version", "3"], "visits", 3, "y"),
    ]:
        for id_column in ("number", "name"):
            result = keyed(place, "t.parquet", "o.parquet", *options, id_column=id_column)
            assert result.exit_code == 0, result.output
            randomizer = Randomizer.load(place / "a.onnx", key=key, context=context)
            expected = randomizer(table["y"], ids=table[id_column], version=version)
            assert pq.read_table(place / "o.parquet")[name].to_pylist() == expected.to_pylist()


def refused(place, result, message):
    assert result.exit_code == 2, result.output
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.stderr and result.stderr.count("\n") == 1
    assert not (place / "refused.parquet").exists() and not list(place.glob(".*partial"))


def test_empty_cells_of_csv_are_no_ids(place):
    (place / "gap.csv").write_text('number,y\n1,2\n"",3\n')
    refused(place, keyed(place, "gap.csv", "refused.parquet"), "an id is null")


def test_a_second_draw_without_a_key_is_warned_of(place, monkeypatch, tmp_path):
    monkeypatch.setenv("LABELDP_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch(mode=0o600)
    table, kept = tmp_path / "t.csv", tmp_path / "keyless-draws.jsonl"
    table.write_text("number,y\n1,2\n2,3\n")
    warning = "y was randomized without a key before"

    def run(*options):
        words = [place / "a.onnx", table, "-o", tmp_path / "out.csv", "--overwrite", *options]
        result = labeldp("randomize", *words)
        assert result.exit_code == 0, result.output
        return result.stderr

    key = ["--key", place / "k.key", "--id-column", "number"]
    assert warning not in run(*key) and not kept.exists()  # a repetition spends nothing
    assert warning not in run()
    assert warning in run() and warning not in run(*key) and warning not in run("--quiet")
    listed = {line: json.loads(line) for line in kept.read_text().splitlines()}
    assert [*listed.values()] == [[str(table), table.stat().st_mtime_ns, "y"]]
    assert kept.stat().st_mode & 0o777 == 0o600
    os.utime(table, ns=(0, 0))  # another state of the table
    assert warning not in run()
    kept.unlink()
    kept.mkdir()  # a list that cannot be kept stops nothing
    assert warning not in run()
