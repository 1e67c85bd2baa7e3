"""Text of others, made safe for a log or a terminal: one line, without control characters.

Messages quote files: names, columns, reasons. Services log them, and a file may come from a
stranger.
"""

import unicodedata
from typing import Any

MAX_CHARACTERS = 2_000
MAX_MARKS = 4
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Letters and marks that show nothing: names that differ by them only would look the same.
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"


def one_line(text: str, most: int = MAX_CHARACTERS) -> str:
    """The text without controls, line breaks, marks of direction, surrogates and the like.

    They become U+FFFD, as do marks beyond four on one character; of a longer text the beginning is
    left, and how long it was.
    """
    if text.isascii() and text.isprintable() and len(text) <= most:
        return text
    result, run = [], 0
    for c in text[:most]:
        kind = unicodedata.category(c)
        run = run + 1 if kind in ("Mn", "Me") and c not in _INVISIBLE else 0
        hidden = kind[0] == "C" or kind in ("Zl", "Zp") or c in _INVISIBLE
        if run <= MAX_MARKS + 1:
            result.append(_REPLACEMENT if hidden or run > MAX_MARKS else c)
    end = f"… ({len(text):,} characters)" if len(text) > most else ""
    return "".join(result) + end


class OneLine(Exception):  # noqa: N818  # a mixin, not an error
    """An error whose message is one printable line from the beginning."""

    def __init__(self, *args: Any) -> None:
        """Keep the message, made printable."""
        super().__init__(*(one_line(a) if isinstance(a, str) else a for a in args))
