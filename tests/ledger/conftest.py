"""A ledger with a budget, a table of labels, and specs that use both."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from labeldp_compile.cli import main
from labeldp_compile.ledger import Entry, read_entries

SPEC = """
version: 1
name: {name}
label:
  column: y
  domain: {{kind: integer, min: 0, max: {last}}}
loss: squared
privacy:
  epsilon: 1.0
  split: {{prior: {prior}, label: {label}}}
  ledger: budget.ledger
prior: {{kind: private, data: {data}, data_set: visits, data_version: {version}}}
mechanism: {{kind: {mechanism}}}
"""


class Bench:
    """One folder with a ledger, data and specs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / "budget.ledger"
        self.write_labels("labels.parquet", [0, 1, 1, 2, 3, 3, 3] * 20)

    def write_labels(self, name: str, labels: list[int]) -> None:
        pq.write_table(pa.table({"y": labels}), self.folder / name)

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
        """What the owner of the file can do to it on purpose."""
        connection = sqlite3.connect(self.ledger)
        before = _rows(connection)
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (trigger,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)
        assert _rows(connection) != before, "the statements changed nothing"
        connection.commit()
        connection.close()


def _rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    tables = ("entries", "secret")
    return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


@pytest.fixture
def bench(tmp_path: Path, known_noise: None) -> Bench:
    return Bench(tmp_path)
