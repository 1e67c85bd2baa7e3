"""Text from files, made safe to show: no control characters, one line, a limited length.

Labels, names, columns, paths and messages of libraries come from files that strangers can write.
Any of it that reaches a terminal, a log or a page goes through here. ``labeldp_runtime`` imports
nothing from here and has the same rules; a test compares both.
"""

from __future__ import annotations

import itertools
import json
import os
import unicodedata
from typing import Any, Literal, TextIO

ELLIPSIS = "…"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MAX_MARKS = 4
"""Combining marks that one character may carry; writing systems stack two or three."""
MAX_CHARACTERS = 2_000
"""Characters of a message."""
# Letters and marks that show nothing: names that differ by them only would look the same.
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"


def printable(text: str) -> str:
    """The text as one line, without what a terminal or a browser would obey instead of show.

    Controls, line breaks, marks of direction, lone surrogates, unassigned, private and invisible
    characters become U+FFFD; marks beyond ``MAX_MARKS`` on one character become one.
    """
    if text.isascii() and text.isprintable():
        return text
    hidden = {ord(c): REPLACEMENT for c in set(text) if _is_hidden(c)}
    return _without_floods(text.translate(hidden))


def one_line(text: str, most: int = MAX_CHARACTERS) -> str:
    """The printable text; of a longer one its beginning, and how long it is."""
    if len(text) <= most:
        return printable(text)
    return f"{printable(text[:most])}{ELLIPSIS} ({len(text):,} characters)"


def json_text(document: Any) -> str:
    """JSON for people and machines, in ASCII: all other characters are escaped."""
    text = json.dumps(document, indent=2, ensure_ascii=True)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON lets stand


def width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def clipped(text: str, most: int) -> str:
    """The printable text, cut to at most ``most`` columns."""
    # No more than MAX_MARKS characters without a width stand on one column.
    beginning = text[: (most + 1) * (MAX_MARKS + 2)]
    text, is_whole = printable(beginning), len(beginning) == len(text)
    if is_whole and width(text) <= most:
        return text
    ends = itertools.accumulate(map(width, text))
    return text[: sum(end < most for end in ends)] + ELLIPSIS


def _without_floods(text: str) -> str:
    if not any(map(_is_mark, set(text))):
        return text
    result, run = [], 0
    for c in text:
        run = run + 1 if _is_mark(c) else 0
        if run <= MAX_MARKS + 1:
            result.append(c if run <= MAX_MARKS else REPLACEMENT)
    return "".join(result)


def _is_hidden(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in ("Zl", "Zp") or character in _INVISIBLE


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me")


# ---- Lines in colour: green for ok, yellow for a warning, red for a failure.
#
# Colour is added after a line was made printable, so no text from a file can bring its own. A pipe,
# ``NO_COLOR`` and a terminal that is ``dumb`` get the plain line.


Status = Literal["ok", "warning", "failed"]
_CODES: dict[Status, str] = {"ok": "32", "warning": "33", "failed": "1;31"}


class Marked(str):
    """A line with a status. It is an ordinary string, except to ``rendered``."""

    __slots__ = ("status",)
    status: Status

    def __new__(cls, line: str, status: Status) -> Marked:
        """The line and its status."""
        marked = super().__new__(cls, line)
        marked.status = status
        return marked


def shows_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal whose user did not turn colour off."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def rendered(line: str, stream: TextIO) -> str:
    """The printable line; in its colour if it is ``Marked`` and the stream shows colour."""
    text = printable(line)
    if isinstance(line, Marked) and shows_colour(stream):
        return f"\x1b[{_CODES[line.status]}m{text}\x1b[0m"
    return text
