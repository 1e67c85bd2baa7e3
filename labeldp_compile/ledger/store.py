"""Where a ledger's entries are kept: one transaction at a time, which is kept whole or not at all.

A store knows rows. Their meaning, the chain that links them, and their sums are the same for all
stores: ``book.py``, ``entries.py`` and ``totals.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from labeldp_compile.ledger.entries import BrokenChainError, Entry
from labeldp_compile.ledger_url import is_url

T = TypeVar("T")
Say = Callable[[str], None]
SECONDS_TO_WAIT = 120.0  # for other writers; for a server that is away, after ε was spent
SERVERS = "labeldp_compile.ledger.postgres.store"
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
    from labeldp_compile.ledger.sqlite_store import SqliteStore  # noqa: PLC0415  # which needs this

    return SqliteStore(Path(where))


def ledger_name(where: Path | str) -> str:
    """A path or URL as messages show it, without a password."""
    return open_store(where).name
