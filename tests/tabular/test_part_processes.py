"""Folders whose parts several processes write: the same as by one, whole or not there."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime.whole_file import partial_of
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.errors import DataError
from labeldp_compile.tabular import open_table, rewrite_table
from labeldp_compile.tabular.part_processes import Workers
from tests.cli.test_cli import labeldp
from tests.helpers import INTEGER_SPEC, compile_text
from tests.tabular import part_recipes

DOMAIN = IntegerDomain(0, 9)
PARTS, N = 5, 2_000
HELD = """
import sys
from functools import partial
from labeldp_verify.interrupts import run
from labeldp_compile.cli import main, randomize
from labeldp_compile.tabular.part_processes import Workers
from tests.tabular.part_recipes import hold
fifo = sys.argv.pop(1)
randomize.Workers = lambda count, open: Workers(count, partial(hold, fifo))
run("labeldp", lambda: main)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An artifact, a key and a folder of parts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]))
    (tmp_path / "a.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
    assert labeldp("keygen", "k.key").exit_code == 0
    (tmp_path / "parts").mkdir()
    for part in range(PARTS):
        write(part, np.arange(part * N, (part + 1) * N))
    return tmp_path


def write(part, ids, label=3):
    table = pa.table({"id": ids, "y": np.full(len(ids), label)})
    pq.write_table(table, f"parts/part-{part}.parquet", row_group_size=500)


def names(folder="."):
    return {path.name for path in Path(folder).iterdir()}


def damage(part):
    path = Path(f"parts/part-{part}.parquet")
    data = bytearray(path.read_bytes())
    data[4:60] = b"\0" * 56
    path.write_bytes(bytes(data))


KEYED = ("--key", "k.key", "--id-column", "id")


def randomize(output, *options):
    return labeldp("randomize", "a.onnx", "parts", "-o", output, *options)


def refused(*options):
    """What is said where nothing is written."""
    before = set(Path().iterdir())
    result = randomize("out", *options)
    assert result.exit_code == 2 and set(Path().iterdir()) == before
    assert "Traceback" not in result.stderr
    return result.stderr


def test_with_a_key_every_part_has_the_same_bytes(place):
    said = []
    for output, jobs in (("one", "1"), ("three", "3"), ("many", "99")):
        result = randomize(output, *KEYED, "--jobs", jobs)
        assert result.exit_code == 0, result.stderr
        said.append(result.stderr.replace(f"{output}:", ""))
        assert names(output) == {f"part-{i}.parquet" for i in range(PARTS)}
        for part in Path(output).iterdir():
            assert part.read_bytes() == Path("one", part.name).read_bytes()
    assert len(set(said)) == 1 and f"{PARTS * N:,} rows" in said[0]


def test_without_one_every_part_has_words_of_its_own(place):
    assert randomize("out", "--jobs", "2").exit_code == 0
    found = [pq.read_table(f"out/part-{part}.parquet")["y"].to_pylist() for part in range(PARTS)]
    assert len(set(map(tuple, found))) == PARTS
    assert {len(column) for column in found} == {N}


def test_several_processes_and_not_this_one(place):
    (place / "seen").mkdir()
    table = open_table(Path("parts"), "y", DOMAIN, all_columns=True)
    workers = Workers(2, partial(part_recipes.by_label, "seen"))
    rows = []
    assert rewrite_table(table, Path("out"), None, workers=workers, progress=rows.append) == 10_000
    assert sum(rows) == PARTS * N
    seen = names("seen")
    assert 1 <= len(seen) <= 2 and str(os.getpid()) not in seen
    assert pq.read_table("out")["y"].to_pylist() == [4] * PARTS * N


def test_an_error_in_one_part_is_that_of_one_process(place):
    damage(3)
    alone = refused()
    assert "part-3.parquet: is damaged" in alone
    assert refused("--jobs", "2") == refused("--jobs", "9") == alone
    damage(1)
    alone = refused()
    assert "part-1.parquet: is damaged" in alone
    assert refused("--jobs", "2") == refused("--jobs", "9") == alone


@pytest.mark.parametrize("where", ["in one part", "in two parts", "in both ways", "and damage"])
def test_ids_that_are_there_twice(place, where):
    if where != "in two parts":
        write(2, np.append(np.arange(2 * N, 3 * N - 1), 2 * N + 7))
    if where in ("in two parts", "in both ways"):
        write(4, np.append(np.arange(4 * N, 5 * N - 1), 11))
    if where == "and damage":
        damage(4)
    alone = refused(*KEYED)
    assert "'id': rows " in alone
    assert refused(*KEYED, "--jobs", "2") == refused(*KEYED, "--jobs", "5") == alone
    assert randomize("out", "--jobs", "2").exit_code == (2 if where == "and damage" else 0)


def test_a_null_id(place):
    write(1, pa.array([1, None, 2]))
    assert refused(*KEYED, "--jobs", "3") == refused(*KEYED)


def test_a_process_that_is_killed(place):
    (place / "seen").mkdir()
    for label in (5, 6):
        write(2, np.arange(10), label)
        table = open_table(Path("parts"), "y", DOMAIN, all_columns=True)
        workers = Workers(2, partial(part_recipes.by_label, "seen"))
        if label == 5:
            with pytest.raises(DataError, match=r"part-2\.parquet: .* by signal 9; .*--jobs"):
                rewrite_table(table, Path("out"), None, workers=workers)
            assert {"out", partial_of(Path("out")).name}.isdisjoint(names())
        else:
            assert rewrite_table(table, Path("out"), None, workers=workers) == 4 * N + 10


def test_processes_that_never_begin_and_errors_of_ours(place):
    table = open_table(Path("parts"), "y", DOMAIN, all_columns=True)
    for workers, error in (
        (Workers(3, part_recipes.die), DataError),
        (Workers(3, part_recipes.broken), RuntimeError),
    ):
        with pytest.raises(error, match=r"part-0|ZeroDivision"):
            rewrite_table(table, Path("out"), None, workers=workers)
        assert {"out", partial_of(Path("out")).name}.isdisjoint(names())


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "\nlabeldp: interrupted\n"),
        (signal.SIGTERM, 143, ""),
        (signal.SIGKILL, -9, ""),
    ],
)
def test_the_processes_end_with_the_first_one(place, number, code, said):
    os.mkfifo("fifo")
    line = [sys.executable, "-c", HELD, "fifo", "randomize", "a.onnx", "parts", "-o", "out"]
    with subprocess.Popen([*line, "--jobs", "2"], stderr=subprocess.PIPE, text=True) as process:
        reading = os.open("fifo", os.O_RDONLY)
        seen = b""
        while len(seen) < 2:
            seen += os.read(reading, 1)
        assert partial_of(Path("out")).is_dir()
        process.send_signal(number)
        assert os.read(reading, 1) == b""  # nobody is left who could write
        os.close(reading)
        assert process.wait() == code
        assert process.stderr.read() == said
    left = number == signal.SIGKILL
    assert partial_of(Path("out")).exists() == left and not Path("out").exists()
    again = randomize("out", "--jobs", "2")
    assert again.exit_code == 0 and ("was killed" in again.stderr) == left


@pytest.mark.parametrize("jobs", ["0", "-1", "257", "two", "1.5", ""])
def test_numbers_of_processes_that_are_none(place, jobs):
    assert "'--jobs'" in refused("--jobs", jobs)


def test_one_file_has_one_writer(place):
    result = labeldp("randomize", "a.onnx", "parts/part-0.parquet", "-o", "o.parquet", "--jobs", 2)
    assert result.exit_code == 2 and "one file" in result.stderr
    assert result.stderr.count("\n") == 1 and not Path("o.parquet").exists()
