"""Entries that name each other by their hashes: none can be altered without altering all later."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labeldp_verify.artifact import canonical_json

from labeldp_compile.errors import InputError

START = "0" * 64


class BrokenChainError(InputError):
    """The ledger was altered, or is damaged; the message says where."""

    exit_code = 1


@dataclass(frozen=True)
class Entry:
    """One row of the ledger.

    Attributes:
        number: 0, 1, 2, …
        kind: ``ledger`` (the first), ``budget``, ``spend`` or ``prior``.
        body: canonical JSON.
        previous: hash of the entry before, or 64 zeros.
        hash: of everything above.
    """

    number: int
    kind: str
    body: str
    previous: str
    hash: str

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The body as it was given."""
        facts: dict[str, Any] = json.loads(self.body)
        return facts


def next_entry(entries: Sequence[Entry], kind: str, facts: dict[str, Any]) -> Entry:
    """The entry that would follow."""
    number, previous = len(entries), entries[-1].hash if entries else START
    body = canonical_json(facts)
    return Entry(number, kind, body, previous, _hash(number, kind, body, previous))


def check_chain(entries: Sequence[Entry], head: str | None = None) -> None:
    """Raise BrokenChainError unless every entry is the one that was written.

    ``head`` is a hash that was noted earlier. A chain alone does not show that its tail was cut
    off, or that all of it was written anew; that a noted hash is still in it does.
    """
    previous = START
    for number, entry in enumerate(entries):
        if entry.number != number:
            raise BrokenChainError(f"entry {number} of the ledger is missing")
        expected = _hash(number, entry.kind, entry.body, previous)
        if entry.previous != previous or entry.hash != expected:
            raise BrokenChainError(f"entry {number} of the ledger is not the one that was written")
        previous = entry.hash
    if not entries or entries[0].kind != "ledger":
        raise BrokenChainError("the ledger does not begin as one")
    if head is not None and not any(hmac.compare_digest(head, entry.hash) for entry in entries):
        raise BrokenChainError(
            "the noted head is not in the ledger: entries were cut off, or written anew"
        )


def head_text(entries: Sequence[Entry]) -> str:
    """The hash of the last entry, to be noted where the ledger's owner cannot change it."""
    return entries[-1].hash


def _hash(number: int, kind: str, body: str, previous: str) -> str:
    text = canonical_json([number, kind, body, previous])
    return hashlib.sha256(text.encode()).hexdigest()
