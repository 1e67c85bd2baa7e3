"""Read and write a ledger, in any store: entries in a chain that is checked.

Each use is one transaction, which begins by checking the whole chain.

Sums over the entries are exact fractions: what each data set may spend, and has spent.

**Labels that are drawn** are booked before an output is visible. An entry is about one output, or
one part of a folder. Under one key, context and version the same output is booked once, however
often its run is repeated; more rows of it are a new entry, and the largest counts. Without a key
every run draws again, and every run is booked.

A row's labels in a folder are drawn once, by one of its artifacts, so a row spends the largest ε of
them. Everything else adds up. A person may have rows in all parts, so for a person the artifacts of
a folder add up. The parts of a folder do not, because the rows of a person are counted over all of
them. Draws outside the folder add up, because each may have as many rows of a person again.

A name alone does not say what was drawn. The digest does, and only the drawing key gives it: in a
folder it is that of a part's bytes, elsewhere that of the ids, if the unit is a person. A folder
has one history (``draw_account``). A part that is booked with two digests has two, which add up.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

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

_DRAW = ("column", "artifact_sha256", "key", "context", "version")
OUTPUT = (*_DRAW, "data_set", "unit", "epsilon", "epsilon_label", "folder", "part", "digest")
"""The facts of a draw that say which output it is about."""


class OverBudgetError(InputError):
    """The data set's budget is too small for what is asked."""

    exit_code = 1


@dataclass
class DataSet:
    """The budget of a data set, and what was spent of it, over all versions.

    ``versions`` has what was spent on each declared version; ``of_labels`` is the part of ``spent``
    that is ε of one label, and not of all labels of a person.
    """

    budget: Fraction
    spent: Fraction = Fraction(0)
    versions: dict[str, Fraction] = field(default_factory=dict)
    of_labels: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """The ε that may still be spent; below 0 if the budget was lowered below the spends."""
        return self.budget - self.spent


def data_sets(entries: Sequence[Entry]) -> dict[str, DataSet]:
    """The account of every data set, by name.

    Raises BrokenChainError if something was spent that the budget of its time did not allow.
    """
    accounts, overspent = add_up(entries)
    for _, error in overspent:
        raise error
    return accounts


Problem = tuple[int, InputError]


def add_up(entries: Sequence[Entry]) -> tuple[dict[str, DataSet], list[Problem]]:
    """The account of every data set, and each spend that its budget did not allow, by number.

    Such a spend is counted all the same.
    """
    accounts: dict[str, DataSet] = {}
    overspent: list[Problem] = []
    for entry in entries:
        if entry.kind not in ("budget", "spend"):
            continue
        facts = entry.facts  # the hash covers it: it is as labeldp wrote it
        name, epsilon = facts["data_set"], Fraction(facts["epsilon"])
        account = accounts.get(name)
        if entry.kind == "budget":
            accounts.setdefault(name, DataSet(Fraction(0))).budget = epsilon
            continue
        if account is None or epsilon < 0 or epsilon > account.left:
            reason = f"entry {entry.number} of the ledger spends more than the budget allowed"
            overspent.append((entry.number, BrokenChainError(reason)))
        account = accounts.setdefault(name, DataSet(Fraction(0)))
        account.spent += epsilon
        account.of_labels += 0 if "unit" in facts else epsilon
        version = facts["data_version"]
        account.versions[version] = account.versions.get(version, Fraction(0)) + epsilon
    return accounts, overspent


def require_budget(path: str, entries: Sequence[Entry], name: str, epsilon: Fraction) -> None:
    """Raise OverBudgetError unless a data set can spend ε; InputError if it has no budget."""
    account = data_sets(entries).get(name)
    if account is None:
        raise InputError(
            f"{path}: the data set {name!r} has no budget; set one with: "
            f"labeldp ledger set-budget {path} --data-set {name} --epsilon ε"
        )
    if epsilon > account.left:
        raise OverBudgetError(
            f"{path}: over budget: the data set {name!r} has spent {float(account.spent):.6g} of "
            f"its budget ε = {float(account.budget):.6g}, and this would spend "
            f"{float(epsilon):.6g} more; no label was read"
        )


@dataclass(frozen=True)
class Totals:
    """ε of one data set, of priors, metrics and labels that were drawn.

    Attributes:
        row: what one row's labels have spent at most.
        person: what all labels of one person have spent; None if an entry counts no persons.
    """

    row: Fraction
    person: Fraction | None

    @classmethod
    def of(cls, spent: DataSet | None, drawn: DrawnLabels | None) -> Totals:
        """The sums of what a data set has of both."""
        spent, drawn = spent or DataSet(Fraction(0)), drawn or DrawnLabels()
        counts_persons = drawn.person is not None and not spent.of_labels
        person = spent.spent + (drawn.person or 0) if counts_persons else None
        return cls(spent.spent + drawn.row, person)


@dataclass
class DrawnLabels:
    """The draws of a data set.

    Attributes:
        rows: private labels, of all outputs.
        row: ε that one row's labels have spent at most, in all columns.
        person: ε that all labels of one person have spent; None if an artifact counts no persons.
    """

    rows: int = 0
    row: Fraction = Fraction(0)
    person: Fraction | None = Fraction(0)
    outputs: dict[tuple[Any, ...], int] = field(default_factory=dict, repr=False)


def drawn_labels(entries: Sequence[Entry]) -> dict[str, DrawnLabels]:
    """The totals of every data set of which labels were drawn, by name."""
    data_sets: dict[str, DrawnLabels] = {}
    rows: dict[tuple[Any, ...], Fraction] = {}
    persons: dict[tuple[Any, ...], Fraction] = {}
    units: dict[str, set[str]] = {}
    first: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.kind != "draw":
            continue
        facts = entry.facts
        name, once = facts["data_set"], [] if facts["key"] else [entry.number]
        drawn = data_sets.setdefault(name, DrawnLabels())
        output = (*(facts[key] for key in OUTPUT), *once)
        drawn.outputs[output] = max(drawn.outputs.get(output, 0), facts["rows"])
        draw = (*(facts[key] for key in _DRAW), *once)
        folder = facts["folder"]
        if folder and first.setdefault((folder, facts["part"]), facts["digest"]) != facts["digest"]:
            folder += facts["digest"]
        row = name, (folder, facts["column"]) if folder else draw
        rows[row] = max(rows.get(row, Fraction(0)), Fraction(facts["epsilon_label"]))
        # in which rows are counted together
        counted = *draw, folder or (facts["part"], facts["digest"])
        persons[name, counted] = Fraction(facts["epsilon"])
        units.setdefault(name, set()).add(facts["unit"])
    for name, drawn in data_sets.items():
        drawn.rows = sum(drawn.outputs.values())
        drawn.row = sum((e for (of, _), e in rows.items() if of == name), Fraction(0))
        of_person = sum((e for (of, _), e in persons.items() if of == name), Fraction(0))
        drawn.person = of_person if units[name] == {"person"} else None
    return data_sets


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
