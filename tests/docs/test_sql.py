"""docs/sql.md: what a stranger types works, and gives what the Python reader gives."""

import hmac
import re
import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from labeldp_runtime import Key, Randomizer

from labeldp_compile.cli import main
from labeldp_compile.export.sql import DIALECTS, NOT_RUN
from runtime.tests.test_hmac_words import GOLDEN
from tests.docs.pages import DOCS, blocks_of
from tests.fixtures.compiled import compile_text, integer_spec

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "sql.md").read_text(encoding="utf-8")


def console(text):
    """The commands of its console blocks."""
    found = re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)
    return [line[2:].split() for block in found for line in block.splitlines() if line[:2] == "$ "]


def test_the_page_works_as_it_stands(tmp_path, inside):
    inside(tmp_path)
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    (tmp_path / "build").mkdir()
    spec = integer_spec(25, "optimal_unbiased", name="mdvis")
    model = compile_text(spec.replace("column: y", "column: mdvis")).model
    Path("build/mdvis.onnx").write_bytes(model)
    for program, *words in console(PAGE):
        assert program == "labeldp"
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
    names = {"duckdb": duckdb, "Path": Path, "Key": Key, "Randomizer": Randomizer, "hmac": hmac}
    in_duckdb, reader, in_sqlite = [
        block.text for block in blocks_of("sql.md") if block.language == "python"
    ][:3]
    assert len(in_duckdb.splitlines()) == 6
    exec(in_duckdb, names)
    exec(reader, names)
    labels = pq.read_table("specs/data/randhie.parquet", columns=["mdvis"])["mdvis"]
    ids = pa.array(range(1, len(labels) + 1))
    expected = names["randomizer"](labels, ids=ids).to_pylist()
    private = pq.read_table("private.parquet").sort_by("id")
    assert private["id"].to_pylist() == ids.to_pylist()
    assert private["mdvis"].to_pylist() == expected

    words = "export --to sql build/mdvis.onnx --dialect sqlite -o mdvis.sqlite.sql"
    assert CliRunner().invoke(main, words.split()).exit_code == 0
    names["database"] = sqlite3.connect(":memory:")
    names["database"].execute("CREATE TABLE visits (id, mdvis)")
    rows = zip(ids.to_pylist()[:300], labels.to_pylist()[:300], strict=True)
    names["database"].executemany("INSERT INTO visits VALUES (?, ?)", rows)
    exec(in_sqlite, names)
    names["database"].close()
    assert [label for _, label in sorted(names["private"])] == expected[:300]


def test_the_page_names_every_dialect_and_which_were_not_run():
    table = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", PAGE, re.M))
    assert set(table) == set(DIALECTS)
    assert {name for name, run in table.items() if run.startswith("**no**")} == {*NOT_RUN}


def test_the_golden_words_are_tested_ones():
    page = (DOCS / "keyed-words.md").read_text(encoding="utf-8")
    section = page.split("\n## HMAC-SHA-256 alone\n")[1].split("\n## ")[0]
    stated = re.findall(r"^\|.*\| ([0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16}) \|$", section, re.M)
    assert stated == [expected for *_, expected in GOLDEN]
