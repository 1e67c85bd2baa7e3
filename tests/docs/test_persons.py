"""docs/persons.md: its tables, queries and commands run, and say what is shown."""

import re
import shlex
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.docs.blocks import blocks_of
from tests.docs.console import follows


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """(queries, folder, commands): what SQL gives, and (shown, printed) of each command."""
    folder, queries, commands = tmp_path_factory.mktemp("persons"), [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks_of("persons.md"):
            if block.language == "sql":
                queries.append(duckdb.sql(block.text).pl())
            elif block.language == "yaml":
                Path(block.file_name).write_text(block.text)
            elif block.language == "python":
                exec(compile(block.text, block.file_name, "exec"), {})
            for part in re.split(r"^\$ labeldp ", block.text, flags=re.M)[1:]:
                command, *shown = part.splitlines()
                done = CliRunner().invoke(main, shlex.split(command))
                assert done.exit_code == 0, done.output
                commands.append((shown, done.output.splitlines()))
    return queries, folder, commands


def test_sql_and_polars_give_the_same_tables(page):
    (one_row, cut), folder, _ = page
    assert one_row.to_dicts() == pl.read_parquet(folder / "customers.parquet").to_dicts()
    first_four = pl.read_parquet(folder / "first-four.parquet")
    assert (
        cut["customer_id"]
        .value_counts()
        .sort("customer_id")
        .equals(first_four["customer_id"].value_counts().sort("customer_id"))
    )
    assert int(cut["customer_id"].value_counts()["count"].max()) == 4
    private = pl.read_parquet(folder / "private.parquet")
    assert sorted(private["ordered_at"]) == sorted(first_four["ordered_at"])


def test_the_commands_print_what_is_shown(page):
    _, _, commands = page
    assert len(commands) == 7
    for shown, printed in commands:
        assert follows(shown, printed), (shown, printed)
