"""Where a ledger's entries are kept: one transaction at a time, which is kept whole or not at all.

A store knows rows. Their meaning, the chain that links them, and their sums are the same for all
stores: ``book.py`` and ``entries.py``.

A ledger's file is SQLite that only grows, readable by its owner alone. One writer at a time (BEGIN
IMMEDIATE), every commit flushed to the disk (synchronous = EXTRA, with a rollback journal).
Triggers stop mistakes in every program that writes with SQLite. If somebody removes them and
changes an entry, the chain shows it.
"""

import shutil
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from labeldp_runtime.whole_file import partial_of, replaced_when_whole
from labeldp_verify.errors import readable

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import BrokenChainError, Entry
from labeldp_compile.ledger_url import is_url
from labeldp_compile.whole_file import OTHERS_WRITE, is_others

T = TypeVar("T")
Say = Callable[[str], None]
SECONDS_TO_WAIT = 120.0  # for other writers; for a server that is away, after ε was spent
SERVERS = "labeldp_compile.ledger.postgres"
"""The function that opens a URL; nothing else imports its folder."""
_COLUMNS = "number, kind, body, previous, hash"


class LedgerRows(ABC):
    """The rows of a ledger inside one transaction, whose only reader and writer this is.

    Attributes:
        schema, only, mark: in SQL, the schema of a table, the word that leaves out child tables,
            and the mark of a value.
        more_columns, more: what a row has besides an entry.
    """

    schema: ClassVar[str] = ""
    only: ClassVar[str] = ""
    mark: ClassVar[str] = "?"
    more_columns: ClassVar[str] = ""
    more: tuple[str, ...] = ()

    @abstractmethod
    def execute(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""

    @abstractmethod
    def require_tables(self) -> None:
        """Raise InputError if it is not a ledger, BrokenChainError if its tables differ."""

    @abstractmethod
    def guard(self) -> None:
        """Set the triggers that refuse changes, if they are not as they should be.

        Raises InputError if this user may not set them.
        """

    @property
    @abstractmethod
    def is_guarded(self) -> bool:
        """Whether the store itself refuses to change, delete, replace or skip an entry."""

    def read(self) -> list[tuple[Any, ...]]:
        """(number, kind, body, previous, hash) of every entry, by number.

        Raises InputError and BrokenChainError.
        """
        self.require_tables()
        table = f"{self.only}{self.schema}entries"
        return self.execute(f"SELECT {_COLUMNS} FROM {table} ORDER BY number")  # noqa: S608

    def add(self, entry: Entry) -> None:
        """Add a row; raises BrokenChainError if something in the store keeps it out or alters it.

        Missing triggers are set first.
        """
        self.guard()
        values = (*astuple(entry), *self.more)
        marks = ", ".join([self.mark] * len(values))
        self.execute(f"INSERT INTO {self.schema}entries VALUES ({marks})", *values)  # noqa: S608
        table = f"{self.only}{self.schema}entries WHERE number = {self.mark}"
        query = f"SELECT {_COLUMNS}{self.more_columns} FROM {table}"  # noqa: S608
        if self.execute(query, entry.number) != [values]:  # a trigger that labeldp did not make
            raise BrokenChainError(
                "the ledger has a foreign trigger that keeps entries out of it: remove the trigger"
            )

    def key(self) -> bytes:
        """The ledger's own random bytes; empty if there is not exactly one such value."""
        rows = self.execute(f"SELECT key FROM {self.only}{self.schema}secret")  # noqa: S608
        return rows[0][0] if len(rows) == 1 and isinstance(rows[0][0], bytes) else b""


class Store(ABC):
    """Where one ledger is; nothing is opened before a method needs it.

    Attributes:
        name: for messages: a path, or a URL without its password.
    """

    name: str

    @abstractmethod
    def create(self, key: bytes, first: Entry) -> None:
        """Make the ledger, whole or not at all; InputError if there is one already."""

    @abstractmethod
    def run(self, body: Callable[[LedgerRows], T], *, waiting: Say | None = None) -> T:
        """The result of ``body``, called in a transaction that is on the disk when this returns.

        An exception undoes all of it. If others write at the same time, ``body`` is called again on
        the new contents: it must do nothing but read and add rows. With ``waiting``, a server that
        is away is waited for, and ``waiting`` gets one line. Raises InputError.
        """

    def free_bytes(self) -> int | None:
        """Room for entries; None where that cannot be known. Raises InputError."""
        return None


def open_store(where: Path | str, *, by_spec: bool = False) -> Store:
    """The store of a path or a URL, not opened yet; raises InputError for an invalid URL.

    A server that a spec names must be in the user's configuration, which describes the connection;
    others are refused.
    """
    if is_url(str(where)):
        store: Store = import_module(SERVERS).store_of(str(where), by_spec=by_spec)
        return store
    return SqliteStore(Path(where))


def ledger_name(where: Path | str) -> str:
    """A path or URL as messages show it, without a password."""
    return open_store(where).name


_APPLICATION = 0x4C44504C  # "LDPL"
_SQLITE = b"SQLite format 3\0"  # how each of its files begins
_OWNER_ONLY = 0o600
_BESIDE = ("-journal", "-wal", "-shm")  # what SQLite reads beside its file, under these names
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


class SqliteStore(Store):
    """A ledger in a file, which is refused if others may open it."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet."""
        self._path, self.name = path, str(path)

    def create(self, key: bytes, first: Entry) -> None:
        """Make the file, of mode 0600, whole or not at all; InputError if the name is taken."""
        path = self._path
        if not path.name:
            raise InputError(f"{path}: is a directory")
        try:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            try:
                _set_up(connection)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute("BEGIN IMMEDIATE")
                for text in _TABLES.values():
                    connection.execute(text)
                connection.execute("INSERT INTO secret VALUES (?)", (key,))
                _SqliteRows(path, connection).add(first)
                connection.execute("COMMIT")
                data = connection.serialize()
            finally:
                connection.close()
            with replaced_when_whole(path, most=_OWNER_ONLY, replace=False) as file:
                file.write(data)
        except FileExistsError as error:
            raise InputError(
                f"{path}: exists already, and a ledger is never replaced: choose another name"
            ) from error
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{path}: cannot be created: {reason}") from error

    def run(self, body: Callable[[LedgerRows], T], *, waiting: Say | None = None) -> T:
        """See ``Store.run``; a file is never away, so ``waiting`` is not called."""
        path = self._path
        _require_private(path)
        # mode=rw: what was deleted a moment ago is not made anew.
        name = f"{path.absolute().as_uri()}?mode=rw"
        try:
            connection = sqlite3.connect(
                name, timeout=SECONDS_TO_WAIT, isolation_level=None, uri=True
            )
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be opened: {error}") from error
        try:
            try:
                _require_ledger(path, connection)
                _set_up(connection)
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise _unusable(path, error) from error
            result = body(_SqliteRows(path, connection))
            connection.execute("COMMIT")
            return result
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be written to: {error}") from error
        finally:
            connection.close()  # without a commit: a rollback

    def free_bytes(self) -> int | None:
        """The free bytes of the file's disk; raises InputError."""
        with readable(self._path):
            return shutil.disk_usage(self._path.absolute().parent).free


class _SqliteRows(LedgerRows):
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection

    def execute(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(text, values).fetchall()

    def require_tables(self) -> None:
        if not self._made("table").items() >= _TABLES.items():
            # A view in their place could have endless rows.
            raise BrokenChainError(f"{self._path}: its tables are not those of a ledger")

    def read(self) -> list[tuple[Any, ...]]:
        try:
            return super().read()
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    def guard(self) -> None:
        """Triggers that were changed or removed are set again."""
        triggers = self._made("trigger")
        for name, text in _GUARDS.items():
            if triggers.get(name) != text:
                self.execute(f"DROP TRIGGER IF EXISTS main.{name}")
                self.execute(text)

    @property
    def is_guarded(self) -> bool:
        return self._made("trigger").items() >= _GUARDS.items()

    def _made(self, kind: str) -> dict[str, str]:
        """The SQL of every table or trigger, by name."""
        return dict(self.execute("SELECT name, sql FROM main.sqlite_master WHERE type = ?", kind))


def _unusable(path: Path, error: sqlite3.Error) -> InputError:
    return InputError(f"{path}: cannot be used as a ledger: {error}")


def _set_up(connection: sqlite3.Connection) -> None:
    # The file may come from a stranger: its views and triggers may call only what has no side
    # effects.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")


def _require_private(path: Path) -> None:
    try:
        status = path.stat()
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{str(path)!a}: is not a file name: {error}") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; create a new ledger with: "
            f"labeldp ledger init {path}"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is not a ledger of labeldp")
    if is_others(status):
        raise InputError(
            f"{path}: belongs to another user, who may change it: make a copy of your own"
        )
    if status.st_mode & 0o077:
        if not _is_sqlite(path):  # not one to change the mode of
            raise InputError(f"{path}: is not a ledger of labeldp")
        raise InputError(f"{path}: others may open it, and it holds a secret key: chmod 600 {path}")
    if status.st_nlink > 1:
        # SQLite names its journal after the file: under another name a crash is not undone.
        unfinished = partial_of(path)
        if unfinished.exists() and path.samefile(unfinished):
            reason = "the run that created it was killed: remove its second name"
            raise InputError(f"{path}: {reason}, {unfinished}")
        raise InputError(
            f"{path}: has a second name (a hard link): remove one name, or make a copy"
        )
    _require_own_journal(path.resolve())


def _require_own_journal(path: Path) -> None:
    """Raise InputError if a file beside the ledger belongs to another user.

    SQLite takes a journal for a change that a crash interrupted, and writes what is in it into the
    ledger: anyone who can put one there would write the ledger.
    """
    for ending in _BESIDE:
        beside = path.with_name(path.name + ending)
        try:
            status = beside.lstat()
        except OSError:
            continue
        is_own = stat.S_ISREG(status.st_mode) and not is_others(status)
        if not is_own or status.st_mode & OTHERS_WRITE:
            raise InputError(
                f"{beside}: belongs to another user, or others may write to it, and SQLite would "
                "write it into the ledger: remove it, and keep the ledger in a folder of your own"
            )


def _is_sqlite(path: Path) -> bool:
    # Only for a file that is refused: to close it frees the locks that this process has on it.
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return True  # it cannot be read, so nothing is known


def _require_ledger(path: Path, connection: sqlite3.Connection) -> None:
    """Before anything is set up, which would change the database of another program."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise InputError(f"{path}: is not a ledger of labeldp")
