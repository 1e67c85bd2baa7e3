"""Reading a ledger, and setting what may be spent on a data set."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from labeldp_compile.ledger.account import data_sets
from labeldp_compile.ledger.chain import Entry, check_chain
from labeldp_compile.ledger.store import transaction


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
