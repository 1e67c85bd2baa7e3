"""Text for people: strings of files, made safe, and bounds, rounded to the cautious side.

Labels, names, columns, paths and messages of libraries come from files that strangers can write.
Any of it that reaches a terminal, a log or a page goes through here. ``labeldp_runtime`` imports
nothing from here and has the same rules; a test compares both.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
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


# ---- Bounds for people, rounded to the cautious side, so that they stay bounds.
#
# A float is read as the shortest decimal that denotes it: .8 stays .8, though the float is a little
# above.


def at_most(bound: float | Fraction, digits: int = 6) -> str:
    """An upper bound in at most ``digits`` ≤ 15 significant digits, not below the number."""
    return f"{_rounded(bound, digits, ROUND_CEILING):.{digits}g}"


def at_least(bound: float | Fraction, digits: int = 6) -> str:
    """A lower bound in at most ``digits`` ≤ 15 significant digits, not above the number."""
    return f"{_rounded(bound, digits, ROUND_FLOOR):.{digits}g}"


def percent_at_most(share: float, digits: int = 2) -> str:
    """An upper bound of a share as a percentage; from 99% on in as many digits as keep it below
    100%, and three at least."""
    first = digits if share <= 0.99 else max(digits, 3)
    texts = [at_most(100 * share, more) for more in range(first, 16)]
    shown = texts[0] if share >= 1 else next((one for one in texts if one != "100"), "100")
    return f"{shown}%"


def probability(share: float, digits: int = 3, kind: Literal["g", "f", "%"] = "g") -> str:
    """A probability rounded to the nearest; 0 and 1 (0% and 100%) only where it is exactly that.

    ``kind`` is that of Python's formats. Near 0 and 1 it has as many digits as it needs.
    """
    ends = (0.0, 100.0 if kind == "%" else 1.0)
    for more in range(digits, 18 if 0 < share < 1 else digits):
        text = f"{share:.{more}{kind}}"
        if float(text.rstrip("%")) not in ends:
            return text
    return f"{share:.{digits}{kind if share in (0, 1) else 'g'}}"


def up_to(bound: float | Fraction) -> str:
    """An upper bound in six decimals, not below the number."""
    return f"{math.ceil(_exact(bound) * 10**6) / 10**6:.6f}"


def down_to(bound: float | Fraction) -> str:
    """A lower bound in four decimals, not above the number."""
    return f"{math.floor(_exact(bound) * 10**4) / 10**4:.4f}"


def _rounded(bound: float | Fraction, digits: int, rounding: str) -> float:
    if not math.isfinite(bound):
        return float(bound)
    numerator, denominator = _exact(bound).as_integer_ratio()
    return float(Context(digits, rounding).divide(Decimal(numerator), Decimal(denominator)))


def _exact(bound: float | Fraction) -> Fraction:
    return Fraction(repr(bound)) if isinstance(bound, float) else Fraction(bound)
