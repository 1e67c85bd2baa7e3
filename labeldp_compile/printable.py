"""Text of others, made fit to be shown: nothing in it is obeyed, and it has an end."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"


def printable(text: str) -> str:
    """The text without what a terminal or a browser would obey instead of show."""
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
