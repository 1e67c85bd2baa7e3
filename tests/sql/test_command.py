"""``labeldp export --to sql``: what it writes, refuses and says."""

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.export.sql import script
from labeldp_compile.export.sql.command import DIALECTS
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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--name", "x; DROP"], "lower-case letters"),
        (["--name", "X"], "lower-case letters"),
        (["--name", "x" * 51], "lower-case letters"),
        (["--context", ""], "expected the name of a column"),
        (["--version", "-1"], "--version"),
        (["--id-type", "uuid"], "--id-type"),
    ],
)
def test_bad_options_are_one_error(tmp_path, options, says):
    done = run(WINDOW, "--dialect", "duckdb", "-o", tmp_path / "x.sql", *options)
    assert done.exit_code == 2 and says in done.stderr and not list(tmp_path.iterdir())


def test_what_sql_cannot_do_is_refused_in_one_sentence(tmp_path, limit):
    out = tmp_path / "x.sql"
    done = run(HERE / "reals.onnx", "--dialect", "duckdb", "-o", out)
    assert done.exit_code == 2 and "rounded at random" in done.stderr
    assert "compile integer labels, or rounding: nearest with a mechanism" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1

    limit(script, "MAX_INTEGERS", 10)
    done = run(WINDOW, "--dialect", "duckdb", "-o", out)
    assert done.exit_code == 2 and "at most 10" in done.stderr and not out.exists()


def test_a_file_that_does_not_verify_gives_no_sql(tmp_path):
    data = bytearray(WINDOW.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "x.onnx").write_bytes(data)
    done = run(tmp_path / "x.onnx", "--dialect", "duckdb", "-o", tmp_path / "x.sql")
    assert done.exit_code in (1, 2) and "Traceback" not in done.stderr
    assert not (tmp_path / "x.sql").exists()


def test_the_output_is_no_input_and_ends_in_sql(tmp_path):
    assert "ends in .sql" in run(WINDOW, "--dialect", "duckdb", "-o", tmp_path / "x.txt").stderr
    copy = tmp_path / "x.sql"
    copy.write_bytes(WINDOW.read_bytes())
    done = run(copy, "--dialect", "duckdb", "-o", copy, "--overwrite")
    assert done.exit_code == 2 and "is the input" in done.stderr
    assert copy.read_bytes() == WINDOW.read_bytes()


def test_context_and_version_make_other_random_bits(tmp_path):
    texts = set()
    for number, options in enumerate(([], ["--context", "x"], ["--version", "1"])):
        out = tmp_path / f"{number}.sql"
        assert run(WINDOW, "--dialect", "sqlite", "-o", out, *options).exit_code == 0
        texts.add(out.read_text().split("\n\n", 1)[1])
    assert len(texts) == 3
