"""Lines in colour: green for ok, yellow for a warning, red for a failure.

Colour is added after a line was made printable, so no text from a file can bring its own. A pipe,
``NO_COLOR`` and a terminal that is ``dumb`` get the plain line.
"""

from __future__ import annotations

import os
from typing import Literal, TextIO

from labeldp_verify.printable import printable

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
