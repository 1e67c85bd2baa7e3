"""Read and write a ledger, in any store: entries in a chain that is checked.

Each use is one transaction, which begins by checking the whole chain.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.client_key import make_client_key
from labeldp_compile.ledger.entries import (
    BrokenChainError,
    Entry,
    check_chain,
    next_entry,
    not_understood,
)
from labeldp_compile.ledger.store import LedgerRows, Say, Store, T, open_store
from labeldp_compile.ledger.totals import (
    DataSet,
    DrawnLabels,
    Problem,
    Totals,
    add_up,
    data_sets,
    drawn_labels,
)

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Ledger:
    """An open ledger inside one transaction (``in_transaction``); its chain has been checked."""

    rows: LedgerRows
    entries: list[Entry]

    def append(self, kind: str, facts: dict[str, object]) -> Entry:
        """Add an entry with the present time; it is kept when the transaction ends."""
        entry = next_entry(self.entries, kind, {**facts, "time": now()})
        self.rows.add(entry)
        self.entries.append(entry)
        return entry

    def key(self) -> bytes:
        """The ledger's own random bytes; the first entry has their hash."""
        key = self.rows.key()
        if hashlib.sha256(key).hexdigest() != self.entries[0].facts.get("key_sha256"):
            raise BrokenChainError("the key of the ledger is not the one that it was created with")
        return key


def in_transaction(store: Store, body: Callable[[Ledger], T], *, waiting: Say | None = None) -> T:
    """Return what ``body`` gives. No one else reads or writes until it ends (``Store.run``).

    Raises InputError if there is no ledger, or others may open it, and BrokenChainError.
    """

    def use(rows: LedgerRows) -> T:
        entries = _checked(store.name, rows)
        for _, error in not_understood(entries):
            raise type(error)(f"{store.name}: {error}")
        return body(Ledger(rows, entries))

    return store.run(use, waiting=waiting)


def create_ledger(where: Path | str, say: Say = lambda line: None) -> None:
    """Make an empty ledger, whole or not at all; InputError if there is one already.

    ``where`` is the path of a file, which gets the mode 0600, or a URL. If the user has no client
    key, one is made, and ``say`` gets a line about it.
    """
    key = secrets.token_bytes(32)
    facts = {
        "format_version": FORMAT_VERSION,
        "key_sha256": hashlib.sha256(key).hexdigest(),
        "client_key_sha256": make_client_key(say).sha256,
        "time": now(),
    }
    open_store(where).create(key, next_entry([], "ledger", facts))


def read_entries(
    where: Path | str, head: str | None = None, *, by_spec: bool = False
) -> list[Entry]:
    """All entries; raises BrokenChainError if they, the key or the sums were tampered with.

    ``head`` is a hash that was noted earlier and must be in the chain; ``by_spec`` is as in
    ``open_store``.
    """

    def read(ledger: Ledger) -> list[Entry]:
        ledger.key()
        check_chain(ledger.entries, head)
        data_sets(ledger.entries)
        return list(ledger.entries)

    return in_transaction(open_store(where, by_spec=by_spec), read)


@dataclass(frozen=True)
class Contents:
    """All entries of a whole chain, of which some may not be understood.

    Attributes:
        entries: all of them.
        accounts: of every data set, from the entries that are understood.
        problems: by number, why an entry is not understood, or that it went over budget.
        drawn: of every data set of which private labels are booked.
    """

    entries: list[Entry]
    accounts: dict[str, DataSet]
    problems: list[Problem]
    drawn: dict[str, DrawnLabels]

    def totals(self, data_set: str) -> Totals:
        """The ε that one row, and one person, of a data set have spent."""
        return Totals.of(self.accounts.get(data_set), self.drawn.get(data_set))


def read_contents(where: Path | str) -> Contents:
    """The entries of a ledger, even if other commands refuse the ledger for one of them.

    Raises BrokenChainError if the chain is not whole.
    """
    store = open_store(where)
    entries = store.run(lambda rows: _checked(store.name, rows))
    problems = list(not_understood(entries))
    numbers = {number for number, _ in problems}
    known = [e for e in entries if e.number not in numbers]
    accounts, overspent = add_up(known)
    return Contents(entries, accounts, problems + overspent, drawn_labels(known))


def is_guarded(where: Path | str) -> bool:
    """Whether the store itself refuses to change, delete, replace or skip entries.

    The next entry sets its triggers. Until then, mistakes made with other programs are found but
    not stopped.
    """
    return in_transaction(open_store(where), lambda ledger: ledger.rows.is_guarded)


def set_budget(where: Path | str, data_set: str, epsilon: Fraction, reason: str | None) -> Entry:
    """Set what may be spent on a data set, over all its versions, from now on.

    Earlier budgets stay in the chain. Raises InputError.
    """
    facts: dict[str, object] = {"data_set": data_set, "epsilon": str(epsilon)}
    if reason is not None:
        facts["reason"] = reason
    return in_transaction(open_store(where), lambda ledger: ledger.append("budget", facts))


def now() -> str:
    """The present time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _checked(name: str, rows: LedgerRows) -> list[Entry]:
    stored = rows.read()
    try:
        entries = [Entry(*row) for row in stored]
        check_chain(entries)
        version = entries[0].facts["format_version"]
    except BrokenChainError as error:
        raise BrokenChainError(f"{name}: {error}") from None
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise BrokenChainError(
            f"{name}: is damaged: it holds an entry that labeldp does not write"
        ) from error
    if version != FORMAT_VERSION:
        shown = one_line(str(version), 100)
        raise InputError(f"{name}: has format {shown!r}, this labeldp reads {FORMAT_VERSION!r}")
    return entries
