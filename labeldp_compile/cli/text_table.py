"""Aligned tables for a terminal, whatever a label is called."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import chain

ELLIPSIS = "…"


def printable(text: str) -> str:
    """The text without what a terminal would obey instead of show."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c)[0] == "C" else c for c in text
    )


def width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def clipped(text: str, most: int) -> str:
    """The printable text, cut to at most so many columns."""
    text = printable(text)
    if width(text) <= most:
        return text
    while text and width(text) > most - 1:
        text = text[:-1]
    return text + ELLIPSIS


def padded(text: str, columns: int, *, left: bool = False) -> str:
    """The text in so many columns, right-justified unless ``left``."""
    space = " " * (columns - width(text))
    return text + space if left else space + text


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> list[str]:
    """Lines of a table; the columns in ``left`` are left-justified, the others right-justified."""
    widths = [max(map(width, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            padded(cell, columns, left=i in left)
            for i, (cell, columns) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in chain([header], rows)
    ]
