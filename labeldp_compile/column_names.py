"""Whether two names can mean one column.

Spark and DuckDB ignore case, and spreadsheets show neither blanks at the ends nor how an accent is
encoded. A name that some engine takes for the label's is refused wherever a column must be public.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def is_among(name: str, others: Iterable[str]) -> bool:
    """Whether a column may be taken for one of the others, by their names alone."""
    return _folded(name) in map(_folded, others)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()
