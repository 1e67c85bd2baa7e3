"""Names of columns: whether two can mean one column, and one string for those of a label.

Spark and DuckDB ignore case. Spreadsheets do not show blanks at the ends, or how an accent is
encoded. If an engine could mistake a name for the label's, it is refused wherever a column must be
public.
"""

import json
import unicodedata
from collections.abc import Iterable, Sequence

from labeldp_verify.graph import canonical_json


def is_among(name: str, others: Iterable[str]) -> bool:
    """Whether a column could be mistaken for one of the others, by the names alone."""
    return _folded(name) in map(_folded, others)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()


def key_of(columns: Sequence[str]) -> str:
    """How ledgers and keyed draws name the columns of a label: its one column, or a list as JSON.

    No other list of columns has the same key.
    """
    return columns[0] if len(columns) == 1 else canonical_json(list(columns))


def columns_of(key: str) -> set[str]:
    """The label columns that a key may name: itself, and those in it if it is a list."""
    try:
        listed = json.loads(key)
    except (ValueError, RecursionError):
        return {key}
    return {key, *map(str, listed)} if isinstance(listed, list) else {key}
