"""What a ledger's entries are kept in: one transaction at a time, of which all or nothing stays.

A store knows rows. What they say, how each names the one before, and what they add up to is the
same for all stores: ``book.py``, ``entries.py`` and ``account.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, ClassVar, TypeVar

from labeldp_compile.ledger.entries import BrokenChainError, Entry

T = TypeVar("T")
Say = Callable[[str], None]
SECONDS_TO_WAIT = 120.0  # for other writers; of a server that is away, for what was paid already
_COLUMNS = "number, kind, body, previous, hash"


class LedgerRows(ABC):
    """The rows of a ledger inside one transaction, whose only reader and writer this is.

    Attributes:
        schema, only, mark: how SQL names the schema of a table, reads no other table with it, and
            marks a value.
        more_columns, more: what a row has behind an entry.
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
        """Raise InputError for what is no ledger, BrokenChainError for other tables than its."""

    @abstractmethod
    def guard(self) -> None:
        """Put in place what refuses changes, where it is not as this version has it.

        Raises InputError where this user may not.
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

        What the store has to refuse changes is put in place first where it is not.
        """
        self.guard()
        values = (*astuple(entry), *self.more)
        marks = ", ".join([self.mark] * len(values))
        self.execute(f"INSERT INTO {self.schema}entries VALUES ({marks})", *values)  # noqa: S608
        table = f"{self.only}{self.schema}entries WHERE number = {self.mark}"
        found = f"SELECT {_COLUMNS}{self.more_columns} FROM {table}"  # noqa: S608
        if self.execute(found, entry.number) != [values]:  # a trigger of somebody else's
            raise BrokenChainError("the ledger holds a trigger that keeps entries out of it")

    def key(self) -> bytes:
        """The ledger's own random bytes; empty if there is not exactly one such value.

        Earlier versions digested data with them; now they are mixed with the client's key.
        """
        rows = self.execute(f"SELECT key FROM {self.only}{self.schema}secret")  # noqa: S608
        return rows[0][0] if len(rows) == 1 and isinstance(rows[0][0], bytes) else b""


class Store(ABC):
    """Where one ledger is; nothing is opened before it is asked for something.

    Attributes:
        name: for messages: a path, or a URL without its password.
        is_own: whether everybody who spends from it may do everything to it: it is one user's file.
    """

    name: str
    is_own: ClassVar[bool]

    @abstractmethod
    def create(self, key: bytes, first: Entry) -> None:
        """Make the ledger, whole or not at all; InputError if there is one already."""

    @abstractmethod
    def run(self, body: Callable[[LedgerRows], T], *, waiting: Say | None = None) -> T:
        """What ``body`` gives, called in a transaction that is on the disk when this returns.

        An exception undoes all of it. Where others stand in the way, ``body`` is called again on
        what the ledger holds by then: it must do nothing but read and add rows. With ``waiting``,
        which is told once, a server that is away is waited for. Raises InputError.
        """

    def free_bytes(self) -> int | None:
        """Room for entries; None where that cannot be known. Raises InputError."""
        return None
