"""One string that names the column or columns of a label in ledgers and keyed draws."""

from __future__ import annotations

import json
from collections.abc import Sequence

from labeldp_verify.graph import canonical_json


def key_of(columns: Sequence[str]) -> str:
    """One column's name, or a list of names that no other list is written like."""
    return columns[0] if len(columns) == 1 else canonical_json(list(columns))


def columns_of(key: str) -> set[str]:
    """The label columns that a key may name: itself, and those in it if it is a list."""
    try:
        listed = json.loads(key)
    except (ValueError, RecursionError):
        return {key}
    return {key, *map(str, listed)} if isinstance(listed, list) else {key}
