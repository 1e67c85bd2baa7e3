"""A ledger as it is read and written, whatever store it is in: entries in a chain that is checked.

Each use is one transaction, which begins with the whole chain.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.account import data_sets
from labeldp_compile.ledger.entries import (
    BrokenChainError,
    Entry,
    check_chain,
    check_kinds,
    next_entry,
)
from labeldp_compile.ledger.place import open_store
from labeldp_compile.ledger.store import Rows, Say, Store, T

FORMAT_VERSION = "1.0"


class Ledger:
    """An open ledger inside one transaction; its chain has been checked."""

    def __init__(self, rows: Rows, entries: list[Entry]) -> None:
        """For ``in_transaction`` only."""
        self._rows = rows
        self.entries = entries

    def append(self, kind: str, facts: dict[str, object]) -> Entry:
        """Add an entry with the present time; it is kept when the transaction ends."""
        entry = next_entry(self.entries, kind, {**facts, "time": now()})
        self._rows.add(entry)
        self.entries.append(entry)
        return entry

    @property
    def is_guarded(self) -> bool:
        """Whether the store itself refuses to change, delete, replace or skip an entry."""
        return self._rows.is_guarded

    def key(self) -> bytes:
        """The secret under which data are digested; the first entry has its hash."""
        key = self._rows.key()
        if hashlib.sha256(key).hexdigest() != self.entries[0].facts.get("key_sha256"):
            raise BrokenChainError("the key of the ledger is not the one that it began with")
        return key


def in_transaction(store: Store, body: Callable[[Ledger], T], *, waiting: Say | None = None) -> T:
    """What ``body`` gives, who is the only reader and writer until it ends (``Store.run``).

    Raises InputError if there is no ledger, or it is not its owner's alone, and BrokenChainError.
    """
    return store.run(lambda rows: body(Ledger(rows, _checked(store.name, rows))), waiting=waiting)


def create_ledger(where: Path | str) -> None:
    """Make an empty ledger, whole or not at all; InputError if there is one already.

    ``where`` is the path of a file, which gets the mode 0600, or a URL.
    """
    key = secrets.token_bytes(32)
    facts = {
        "format_version": FORMAT_VERSION,
        "key_sha256": hashlib.sha256(key).hexdigest(),
        "time": now(),
    }
    open_store(where).create(key, next_entry([], "ledger", facts))


def read_entries(where: Path | str, head: str | None = None) -> list[Entry]:
    """All entries; raises BrokenChainError if they, the key or the sums were tampered with.

    ``head`` is a hash that was noted earlier, which must be in the chain.
    """

    def read(ledger: Ledger) -> list[Entry]:
        ledger.key()
        check_chain(ledger.entries, head)
        data_sets(ledger.entries)
        return list(ledger.entries)

    return in_transaction(open_store(where), read)


def is_guarded(where: Path | str) -> bool:
    """Whether the store has what refuses to change, delete, replace or skip entries.

    The next entry sets it; until then mistakes with other programs are found, but not stopped.
    """
    return in_transaction(open_store(where), lambda ledger: ledger.is_guarded)


def set_budget(where: Path | str, data_set: str, epsilon: Fraction, reason: str | None) -> Entry:
    """Say what may be spent on a data set, in all its versions, from now on.

    What was said before stays in the chain. Raises InputError.
    """
    facts: dict[str, object] = {"data_set": data_set, "epsilon": str(epsilon)}
    if reason is not None:
        facts["reason"] = reason
    return in_transaction(open_store(where), lambda ledger: ledger.append("budget", facts))


def now() -> str:
    """The present time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _checked(name: str, rows: Rows) -> list[Entry]:
    found = rows.read()
    try:
        entries = [Entry(*row) for row in found]
        check_chain(entries)
        version = entries[0].facts["format_version"]
    except BrokenChainError as error:
        raise BrokenChainError(f"{name}: {error}") from None
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise BrokenChainError(f"{name}: holds what no ledger of labeldp holds") from error
    if str(version).partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise InputError(f"{name}: has format {version!r}, this labeldp reads {FORMAT_VERSION!r}")
    try:
        check_kinds(entries)
    except InputError as error:
        raise type(error)(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenChainError(f"{name}: holds what no ledger of labeldp holds") from error
    return entries
