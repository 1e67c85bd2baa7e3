"""The entries of a ledger as one table, for spreadsheets and other programs."""

from collections.abc import Iterator

import pyarrow as pa

from labeldp_compile.ledger.book import Contents
from labeldp_compile.ledger.entries import Entry

_TEXT = ("time", "kind", "data_set", "data_version", "command", "column", "unit", "epsilon")
_MORE = (
    "epsilon_label",
    "artifact_sha256",
    "key",
    "context",
    "folder",
    "part",
    "digest",
    "note",
    "reason",
)
_WHOLE = ("rows", "persons")
SCHEMA = pa.schema(
    [
        ("entry", pa.int64()),
        *((name, pa.string()) for name in (*_TEXT, *_MORE)),
        *((name, pa.int64()) for name in _WHOLE),
        ("version", pa.string()),
        ("spec", pa.string()),
        ("hash", pa.string()),
    ]
)
"""ε is exact, as "p/q"; what an entry does not state is null."""


def exported(contents: Contents) -> Iterator[tuple[object, ...]]:
    """A row for each entry, of those that are understood."""
    problems = dict(contents.problems)
    for entry in contents.entries:
        if entry.number not in problems:
            yield tuple(_value(entry, name) for name in SCHEMA.names)


def _value(entry: Entry, name: str) -> object:
    own = {"entry": entry.number, "kind": entry.kind, "hash": entry.hash}
    value = own.get(name, entry.facts.get(name))
    return str(value) if name == "version" and value is not None else value
