"""The ledger's file: SQLite that only grows, readable by its owner alone.

One writer at a time (BEGIN IMMEDIATE), every commit flushed to the disk (synchronous = EXTRA, with
a rollback journal). Triggers stop mistakes in every program that writes with SQLite, until somebody
takes them away on purpose; the chain shows that.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from labeldp_runtime.whole_file import replaced_when_whole

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.account import data_sets
from labeldp_compile.ledger.entries import (
    BrokenChainError,
    Entry,
    check_chain,
    check_kinds,
    next_entry,
)

FORMAT_VERSION = "1.0"
_APPLICATION = 0x4C44504C  # "LDPL"
_SQLITE = b"SQLite format 3\0"  # how each of its files begins
_SECONDS_TO_WAIT = 120.0
_OWNER_ONLY = 0o600
_TABLES = {
    "entries": """CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE
)""",
    "secret": "CREATE TABLE secret (key BLOB NOT NULL)",
}
# The file itself refuses to change, delete, replace or skip an entry. INSERT OR REPLACE deletes the
# row that is in its way without a word to triggers on deletion (unless recursive_triggers is on),
# so an insertion is refused before it if one is.
_GUARDS = {
    "entries_stay": """CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END""",
    "entries_remain": """CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END""",
    # IS NOT, because a number that is left out may be NULL here. Before the first entry: 64 zeros.
    "entries_follow": """CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.number IS NOT (SELECT coalesce(max(number), -1) + 1 FROM entries)
    OR NEW.previous IS NOT coalesce(
        (SELECT hash FROM entries ORDER BY number DESC LIMIT 1), printf('%064d', 0))
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger follow one another'); END""",
    "entries_differ": """CREATE TRIGGER entries_differ BEFORE INSERT ON entries
    WHEN EXISTS (SELECT 1 FROM entries WHERE number = NEW.number OR hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never replaced'); END""",
    "secret_stays": """CREATE TRIGGER secret_stays BEFORE UPDATE ON secret
    BEGIN SELECT RAISE(ABORT, 'the key of a ledger is never changed'); END""",
    "secret_remains": """CREATE TRIGGER secret_remains BEFORE DELETE ON secret
    BEGIN SELECT RAISE(ABORT, 'the key of a ledger is never deleted'); END""",
    "secret_is_one": """CREATE TRIGGER secret_is_one BEFORE INSERT ON secret
    WHEN EXISTS (SELECT 1 FROM secret)
    BEGIN SELECT RAISE(ABORT, 'a ledger has one key, which is never replaced'); END""",
}


class Ledger:
    """An open ledger inside one transaction; its chain has been checked."""

    def __init__(self, connection: sqlite3.Connection, entries: list[Entry]) -> None:
        """For ``transaction`` only."""
        self._connection = connection
        self.entries = entries

    def append(self, kind: str, facts: dict[str, object]) -> Entry:
        """Add an entry with the present time; it is kept when the transaction ends.

        The triggers of an earlier version, or ones that were taken away, are replaced first.
        """
        entry = next_entry(self.entries, kind, {**facts, "time": now()})
        _set_guards(self._connection)
        added = self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
            (entry.number, entry.kind, entry.body, entry.previous, entry.hash),
        )
        if added.rowcount != 1:  # a trigger of somebody else's can pass an insertion over
            raise BrokenChainError("the ledger holds a trigger that keeps entries out of it")
        self.entries.append(entry)
        return entry

    @property
    def is_guarded(self) -> bool:
        """Whether the file itself refuses to change, delete, replace or skip an entry."""
        return _is_guarded(self._connection)

    def key(self) -> bytes:
        """The secret under which data are digested; the first entry has its hash."""
        rows = self._connection.execute("SELECT key FROM secret").fetchall()
        key = bytes(rows[0][0]) if len(rows) == 1 and isinstance(rows[0][0], bytes) else b""
        if hashlib.sha256(key).hexdigest() != self.entries[0].facts.get("key_sha256"):
            raise BrokenChainError("the key of the ledger is not the one that it began with")
        return key


def create_ledger(path: Path) -> None:
    """Make an empty ledger of mode 0600, whole or not at all; InputError if the name is taken."""
    if not path.name:
        raise InputError(f"{path}: is a directory")
    try:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            _set_up(connection)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            key = secrets.token_bytes(32)
            connection.execute("BEGIN IMMEDIATE")
            for text in _TABLES.values():
                connection.execute(text)
            connection.execute("INSERT INTO secret VALUES (?)", (key,))
            Ledger(connection, []).append(
                "ledger",
                {
                    "format_version": FORMAT_VERSION,
                    "key_sha256": hashlib.sha256(key).hexdigest(),
                },
            )
            connection.execute("COMMIT")
            data = connection.serialize()
        finally:
            connection.close()
        with replaced_when_whole(path, most=_OWNER_ONLY, replace=False) as file:
            file.write(data)
    except FileExistsError as error:
        raise InputError(f"{path}: exists already; a ledger is never replaced") from error
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be made: {reason}") from error


@contextmanager
def transaction(path: Path) -> Iterator[Ledger]:
    """The only reader and writer of a ledger, until the end; an exception undoes all of it.

    Raises InputError if the file is no ledger or is not its owner's alone, and BrokenChainError.
    """
    _require_private(path)
    # mode=rw: what was deleted a moment ago is not made anew.
    name = f"{path.absolute().as_uri()}?mode=rw"
    try:
        connection = sqlite3.connect(name, timeout=_SECONDS_TO_WAIT, isolation_level=None, uri=True)
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be opened: {error}") from error
    try:
        try:
            _set_up(connection)
            connection.execute("BEGIN IMMEDIATE")
            ledger = _read(path, connection)
        except sqlite3.Error as error:
            raise InputError(f"{path}: is no ledger that can be used: {error}") from error
        yield ledger
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be written to: {error}") from error
    finally:
        connection.close()  # without a commit: a rollback


def now() -> str:
    """The present time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")


def _read(path: Path, connection: sqlite3.Connection) -> Ledger:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != _APPLICATION:
        raise InputError(f"{path}: is no ledger of labeldp")
    tables = connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'table'")
    if not dict(tables.fetchall()).items() >= _TABLES.items():
        # A view in their place could go on for ever.
        raise BrokenChainError(f"{path}: its tables are not those of a ledger")
    rows = connection.execute(
        "SELECT number, kind, body, previous, hash FROM entries ORDER BY number"
    ).fetchall()
    try:
        entries = [Entry(*row) for row in rows]
        check_chain(entries)
        version = entries[0].facts["format_version"]
    except BrokenChainError as error:
        raise BrokenChainError(f"{path}: {error}") from None
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise BrokenChainError(f"{path}: holds what no ledger of labeldp holds") from error
    if str(version).partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise InputError(f"{path}: has format {version!r}, this labeldp reads {FORMAT_VERSION!r}")
    try:
        check_kinds(entries)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenChainError(f"{path}: holds what no ledger of labeldp holds") from error
    return Ledger(connection, entries)


def _require_private(path: Path) -> None:
    try:
        status = path.stat()
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{str(path)!a}: is no name of a file: {error}") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; a new ledger is made by: "
            f"labeldp ledger init {path}"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is no ledger of labeldp")
    if status.st_mode & 0o077:
        if not _is_sqlite(path):  # not one to change the mode of
            raise InputError(f"{path}: is no ledger of labeldp")
        raise InputError(f"{path}: others may open it; it holds a secret key: chmod 600 {path}")
    if status.st_nlink > 1:
        # SQLite names its journal after the file: under another name a crash is not undone.
        raise InputError(f"{path}: has a second name (a hard link); keep one, or make a copy")


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return True  # who may not read it cannot tell


def read_entries(path: Path, head: str | None = None) -> list[Entry]:
    """All entries; raises BrokenChainError if they, the key or the sums were tampered with.

    ``head`` is a hash that was noted earlier, which must be in the chain.
    """
    with transaction(path) as ledger:
        ledger.key()
        check_chain(ledger.entries, head)
        data_sets(ledger.entries)
        return list(ledger.entries)


def is_guarded(path: Path) -> bool:
    """Whether the file has the triggers that refuse to change, delete, replace or skip entries.

    The next entry sets them; until then mistakes with other programs are found, but not stopped.
    """
    with transaction(path) as ledger:
        return ledger.is_guarded


def set_budget(path: Path, data_set: str, epsilon: Fraction, reason: str | None) -> Entry:
    """Say what may be spent on a data set, in all its versions, from now on.

    What was said before stays in the chain. Raises InputError.
    """
    facts: dict[str, object] = {"data_set": data_set, "epsilon": str(epsilon)}
    with transaction(path) as ledger:
        return ledger.append("budget", facts if reason is None else {**facts, "reason": reason})


def _is_guarded(connection: sqlite3.Connection) -> bool:
    """Whether the file has these triggers; an earlier version made fewer."""
    return _triggers(connection).items() >= _GUARDS.items()


def _set_guards(connection: sqlite3.Connection) -> None:
    """Make those that are missing, or are not as they stand here, inside a transaction."""
    found = _triggers(connection)
    for name, text in _GUARDS.items():
        if found.get(name) != text:
            connection.execute(f"DROP TRIGGER IF EXISTS main.{name}")
            connection.execute(text)


def _triggers(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'")
    return dict(rows.fetchall())
