"""docs/estimate.md: its commands run, and its SQL gives the numbers of the command."""

import re
import shlex
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.estimates.long_table import COLUMNS
from tests.docs.blocks import DOCS, blocks_of

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "estimate.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command of the page prints, in a folder like the clone; and its SQL's rows."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "specs").symlink_to(ROOT / "specs")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks_of("estimate.md"):
            if block.language == "sql":
                found["sql"] = duckdb.sql(block.text).fetchall()
            for command in re.findall(r"^\$ labeldp (.*)$", block.text, re.M):
                done = CliRunner().invoke(main, shlex.split(command))
                assert done.exit_code == 0, done.output
                found[command] = done.stdout.splitlines()
        command = next(one for one in found if one.startswith("estimate"))
        words = [*shlex.split(command), "--parquet", "estimates.parquet"]
        assert CliRunner().invoke(main, words).exit_code == 0
        found["table"] = pq.read_table("estimates.parquet").to_pylist()
    return found


def test_the_example_has_the_form_that_is_shown(printed):
    (lines,) = (lines for command, lines in printed.items() if command.startswith("estimate"))
    (shown,) = re.findall(r"^\$ labeldp estimate .*?\n(.*?)^```$", PAGE, re.M | re.S)
    shown = shown.splitlines()
    assert len(shown) == len(lines) and shown[:3] == lines[:3]
    assert shown[3].split() == lines[3].split()  # the header
    first = [[line.split()[0] for line in part if line] for part in (shown, lines)]
    assert first[0] == first[1]


def test_sql_gives_the_numbers_of_the_command(printed):
    wanted = {
        (row["hlthp"], row["statistic"], row["label"]): row
        for row in printed["table"]
        if not row["all_rows"] and row["statistic"] != "quantile"
    }
    assert len(wanted) == 2 * (1 + 10) and len(printed["sql"]) == len(wanted)
    for group, statistic, label, estimate, error, rows in printed["sql"]:
        row = wanted[group, statistic, label]
        assert estimate == pytest.approx(row["estimate"], abs=1e-9) and rows == row["rows"]
        if statistic == "mean" or 0 <= estimate <= 1:
            assert error == pytest.approx(row["standard_error"], rel=1e-6)


def test_every_column_of_the_long_table_is_explained():
    explained = PAGE.partition("## One table for dashboards")[2].partition("\n## ")[0]
    for name in COLUMNS.names:
        assert f"`{name}`" in explained
