"""Whether two names can mean one column.

Spark and DuckDB ignore case. Spreadsheets do not show blanks at the ends, or how an accent is
encoded. If an engine could mistake a name for the label's, it is refused wherever a column must be
public.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def is_among(name: str, others: Iterable[str]) -> bool:
    """Whether a column could be mistaken for one of the others, by the names alone."""
    return _folded(name) in map(_folded, others)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()
