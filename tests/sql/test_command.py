"""``labeldp export --to sql``: what it writes, refuses and says."""

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.export.sql import DIALECTS, script
from runtime.tests.helpers import HERE, OLD

WINDOW = OLD / "plain/optimal-unbiased.onnx"


def run(*arguments):
    return CliRunner().invoke(main, ["export", "--to", "sql", *map(str, arguments)])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_writes_one_file_and_says_what_was_not_run(tmp_path, dialect):
    out = tmp_path / "x.sql"
    done = run(WINDOW, "--dialect", dialect, "-o", out)
    assert done.exit_code == 0 and done.stdout == f"{out}\n"
    assert out.read_text().startswith("-- optimal-unbiased: ε ≤ 1 of a label is spent for each\n")
    assert "randomize_optimal_unbiased" in out.read_text()
    assert ("do not run it" in done.stderr) == (dialect in ("bigquery", "snowflake"))
    assert "must not have both" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.sql"]
    again = run(WINDOW, "--dialect", dialect, "-o", out)
    assert again.exit_code == 2 and "exists already" in again.stderr
    assert run(WINDOW, "--dialect", dialect, "-o", out, "--overwrite").exit_code == 0


def test_what_sql_cannot_do_is_refused_in_one_sentence(tmp_path, limit):
    out = tmp_path / "x.sql"
    done = run(HERE / "reals.onnx", "--dialect", "duckdb", "-o", out)
    assert done.exit_code == 2 and "rounded at random" in done.stderr
    assert "compile integer labels, or rounding: nearest with a mechanism" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1

    limit(script, "MAX_INTEGERS", 10)
    done = run(WINDOW, "--dialect", "duckdb", "-o", out)
    assert done.exit_code == 2 and "at most 10" in done.stderr and not out.exists()
