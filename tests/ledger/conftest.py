"""A ledger with a budget, a table of labels, and specs that use both; in a file, or a database.

``pytestmark = BOTH_STORES`` has all tests of a file run on both. Those that need a server are left
out where there is none, or fail.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sqlite3
import tomllib
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from labeldp_compile.cli import main
from labeldp_compile.ledger.book import read_entries
from labeldp_compile.ledger.entries import Entry
from tests.ledger.postgres import PASSWORD, Server, programs

SPEC = """
version: 1
name: {name}
goal: labels
label:
  column: y
  domain: {{kind: integer, min: 0, max: {last}}}
loss: squared
privacy:
  epsilon: 1.0
  split: {{prior: {prior}, label: {label}}}
  ledger: {ledger}
prior: {{kind: private, data: {data}, data_set: visits, data_version: {version}}}
mechanism: {{kind: {mechanism}}}
"""


class Bench:
    """One folder with a ledger, data and specs.

    Attributes:
        ledger: as commands are told it.
        named: as a spec names it.
    """

    ledger: Path | str

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, Path(os.environ["LABELDP_CONFIG"])
        self.ledger, self.named = folder / "budget.ledger", "budget.ledger"
        self.write_labels("labels.parquet", [0, 1, 1, 2, 3, 3, 3] * 20)

    def write_labels(self, name: str, labels: list[int]) -> None:
        pq.write_table(pa.table({"y": labels}), self.folder / name)

    def another(self, folder: str) -> Bench:
        (self.folder / folder).mkdir()
        return Bench(self.folder / folder)

    def run(self, *arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    def open_budget(self, epsilon: str) -> None:
        assert self.run("ledger", "init", self.ledger).exit_code == 0
        self.set_budget(epsilon)

    def set_budget(self, epsilon: str, data_set: str = "visits") -> None:
        flags = ("--data-set", data_set, "--epsilon", epsilon)
        assert self.run("ledger", "set-budget", self.ledger, *flags).exit_code == 0

    def spec(self, name: str = "one", **changes: str) -> Path:
        values = {
            "name": name,
            "last": "3",
            "prior": "0.1",
            "label": "0.9",
            "data": "labels.parquet",
            "version": "2026-01",
            "mechanism": "rr_on_bins",
            "ledger": self.named,
            **changes,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(SPEC.format(**values))
        return path

    def compile(self, name: str = "one", **changes: str) -> Result:
        spec = self.spec(name, **changes)
        return self.run("compile", spec, "-o", self.folder / "build", "--overwrite")

    def entries(self, kind: str | None = None) -> list[Entry]:
        return [e for e in read_entries(self.ledger) if kind in (None, e.kind)]

    def tamper(self, *statements: str) -> None:
        """What the owner of the ledger can do to it on purpose."""
        connection = self._connect()
        before = _rows(connection)
        self._drop_triggers(connection)
        for statement in statements:
            connection.execute(statement)
        assert _rows(connection) != before, "the statements changed nothing"
        connection.commit()
        connection.close()

    def force(self, entry: Entry) -> None:
        """An entry that the ledger would refuse, written by its owner."""
        self.insert(entry, guarded=False)

    def insert(self, entry: Entry, *, guarded: bool = True) -> None:
        """An entry that is written by hand."""
        connection = self._connect()
        if not guarded:
            self._drop_triggers(connection)
        values = (entry.number, entry.kind, entry.body, entry.previous, entry.hash)
        connection.execute(self._insert, values)
        connection.commit()
        connection.close()

    _insert = "INSERT INTO entries VALUES (?, ?, ?, ?, ?)"

    def _connect(self):
        return sqlite3.connect(self.ledger)

    def _drop_triggers(self, connection) -> None:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (trigger,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")


class PostgresBench(Bench):
    """The same with a schema of its own in the server's database."""

    _schemas = count()

    def __init__(self, folder: Path, server: Server) -> None:
        super().__init__(folder)
        self.server, self.schema = server, f"ledger_{next(self._schemas)}"
        self.ledger = server.url(self.schema)
        self.named = self.name_server(server.url(self.schema, password=""))  # in PGPASSWORD

    def name_server(self, url: str) -> str:
        """Have the user's configuration name the URL's server; gives the URL."""
        servers = tomllib.loads(self.config.read_text()).get("ledger", {}).get("servers", [])
        servers.append(re.sub(r"[?&]schema=[a-z0-9_]*", "", url))
        self.config.write_text(f"[ledger]\nservers = {json.dumps(servers)}\n")
        return url

    def run(self, *arguments: object) -> Result:
        result = super().run(*arguments)
        assert PASSWORD not in result.output + repr(result.exception)
        return result

    def owner(self):
        """A connection of the owner of the ledger, without labeldp."""
        return self._connect()

    def require_no_password(self) -> None:
        for path in self.folder.rglob("*"):
            assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path

    _insert = "INSERT INTO entries VALUES (%s, %s, %s, %s, %s, 'by hand')"

    def _connect(self):
        connection = self.server.connect()
        connection.execute(f"SET search_path = {self.schema}")
        connection.autocommit = False
        return connection

    def _drop_triggers(self, connection) -> None:
        for trigger, table in (
            ("entries_stay", "entries"),
            ("entries_follow", "entries"),
            ("secret_stays", "secret"),
        ):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {table}")
        connection.execute("ALTER TABLE entries DROP CONSTRAINT IF EXISTS entries_kind")


BOTH_STORES = pytest.mark.parametrize("store", ["sqlite", "postgres"])


def _rows(connection) -> list[tuple[object, ...]]:
    tables = ("entries", "secret")
    return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


@pytest.fixture(scope="session")
def _server():
    folder = programs()
    lacks = "no PostgreSQL" if folder is None else "no psycopg"
    if folder is None or importlib.util.find_spec("psycopg") is None:
        if os.environ.get("LABELDP_ALL"):
            pytest.fail(f"{lacks}: see build/ledger/install.log")
        pytest.skip(f"{lacks}: run tests/ledger/install, and pip install 'psycopg[binary]'")
    server = Server(folder)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server(_server, environment):
    environment(PGPASSWORD=PASSWORD)
    if not _server.is_running:  # after a test that failed
        _server.start()
    return _server


@pytest.fixture(autouse=True)
def config(tmp_path_factory, environment):
    """The user's configuration: a file of this test's own, with a key beside it once it is made."""
    path = tmp_path_factory.mktemp("user") / "config.toml"
    path.touch(mode=0o600)
    environment(LABELDP_CONFIG=path)
    return path


@pytest.fixture
def store():
    return "sqlite"


@pytest.fixture
def bench(store, tmp_path, config, request):
    if store == "sqlite":
        yield Bench(tmp_path)
        return
    bench = PostgresBench(tmp_path, request.getfixturevalue("server"))
    yield bench
    bench.require_no_password()


@pytest.fixture
def used(bench):
    """Entries 0 (ledger), 1 (budget), 2 (spend) and 3 (prior)."""
    bench.open_budget("1")
    done = bench.compile()
    assert done.exit_code == 0, done.output
    return bench
