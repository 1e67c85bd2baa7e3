"""URLs of ledgers: what is understood, and that no message holds a password. Needs no server."""

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.ledger.store import ledger_name
from labeldp_compile.ledger_url import Url, is_url

SPEC = """
version: 1
name: one
goal: labels
label: {{column: y, domain: {{kind: integer, min: 0, max: 3}}}}
loss: squared
privacy: {{epsilon: 1, split: paper, ledger: "{ledger}"}}
prior: {{kind: private, data: labels.parquet, data_set: visits, data_version: first}}
mechanism: {{kind: rr_on_bins}}
"""


@pytest.mark.parametrize(
    ("url", "name", "conninfo", "schema"),
    [
        (
            "postgresql://me:secret@db.example:5432/budgets",
            "postgresql://me@db.example:5432/budgets",
            "postgresql://me:secret@db.example:5432/budgets",
            "labeldp_ledger",
        ),
        (
            "postgres://me@/b?host=/run/pg&schema=team_a&password=secret&sslmode=require",
            "postgresql://me@/b?host=/run/pg&schema=team_a",
            "postgresql://me@/b?host=/run/pg&password=secret&sslmode=require",
            "team_a",
        ),
        (
            "postgresql://me:sec%40ret@one:1,two:2/b?schema=labeldp_ledger",
            "postgresql://me@one:1,two:2/b",
            "postgresql://me:sec%40ret@one:1,two:2/b",
            "labeldp_ledger",
        ),
        ("postgresql://[::1]:5/b", "postgresql://[::1]:5/b", "postgresql://[::1]:5/b", None),
        ("postgresql://", "postgresql:///", "postgresql:///", None),
    ],
)
def test_a_url_is_taken_apart(url, name, conninfo, schema):
    found = Url.parse(url)
    assert (found.name, found.conninfo) == (name, conninfo)
    assert found.schema == (schema or "labeldp_ledger")
    assert found.has_password == ("sec" in url)
    assert "sec" not in repr(found) and ledger_name(url) == name


MISTAKES = [
    "postgresql://me:sec@ret@host/b",
    "postgresql://me:sec/ret@host/b",
    "postgresql://me:sec ret@host/b",
    "postgresql://me:secret",
    "postgresql:me:secret@host/b",
    "postgresql+psycopg://me:secret@host/b",
    "mysql://me:secret@host/b",
    "postgresql://me:secret@host/b?password=a@secret",
    "postgresql://me:secret@host/b?schema=pg_secret",
    "postgresql://me:secret@host/b?schema=a&schema=b",
    "postgresql://me:secret@host/b?host=%zz",
]


@pytest.mark.parametrize("url", MISTAKES)
def test_a_url_with_a_mistake_is_not_shown(url, tmp_path):
    pytest.importorskip("psycopg")
    assert is_url(url)
    spec = tmp_path / "one.yaml"
    spec.write_text(SPEC.format(ledger=url), encoding="utf-8")
    for command in (["ledger", "show", url], ["ledger", "init", url], ["plan", str(spec)]):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 2 and "sec" not in result.output, result.output
        assert "Traceback" not in result.output and not list(tmp_path.glob("*:*"))


def test_without_its_driver(without):
    without("psycopg")
    result = CliRunner().invoke(main, ["ledger", "show", "postgresql://me:secret@host/b"])
    assert result.exit_code == 2 and "labeldp[postgres]" in result.stderr
    assert result.stderr.count("\n") == 1 and "secret" not in result.stderr
