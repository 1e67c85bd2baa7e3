"""What a ledger's entries are kept in: one transaction at a time, of which all or nothing stays.

A store knows rows. What they say, how each names the one before, and what they add up to is the
same for all stores: ``book.py``, ``entries.py`` and ``account.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from labeldp_compile.ledger.entries import Entry

T = TypeVar("T")
Say = Callable[[str], None]
SECONDS_TO_WAIT = 120.0  # for other writers; of a server that is away, for what was paid already


class LedgerRows(Protocol):
    """The rows of a ledger inside one transaction, whose only reader and writer this is."""

    def read(self) -> list[tuple[Any, ...]]:
        """(number, kind, body, previous, hash) of every entry, by number.

        Raises InputError for what is no ledger, and BrokenChainError for other tables than its.
        """

    def add(self, entry: Entry) -> None:
        """Add a row; raises BrokenChainError if something in the store keeps it out or alters it.

        What the store has to refuse changes is put in place first where it is not.
        """

    def guard(self) -> None:
        """Put in place what refuses changes, where it is not as this version has it.

        Raises InputError where this user may not.
        """

    def key(self) -> bytes:
        """The ledger's own random bytes; empty if there is not exactly one such value.

        Earlier versions digested data with them; now they are mixed with the client's key.
        """

    @property
    def is_guarded(self) -> bool:
        """Whether the store itself refuses to change, delete, replace or skip an entry."""


class Store(Protocol):
    """Where one ledger is; nothing is opened before it is asked for something."""

    @property
    def name(self) -> str:
        """For messages: a path, or a URL without its password."""

    @property
    def is_own(self) -> bool:
        """Whether everybody who spends from it may do everything to it: it is one user's file."""

    def create(self, key: bytes, first: Entry) -> None:
        """Make the ledger, whole or not at all; InputError if there is one already."""

    def run(self, body: Callable[[LedgerRows], T], *, waiting: Say | None = None) -> T:
        """What ``body`` gives, called in a transaction that is on the disk when this returns.

        An exception undoes all of it. Where others stand in the way, ``body`` is called again on
        what the ledger holds by then: it must do nothing but read and add rows. With ``waiting``,
        which is told once, a server that is away is waited for. Raises InputError.
        """

    def free_bytes(self) -> int | None:
        """Room for entries; None where that cannot be known."""
