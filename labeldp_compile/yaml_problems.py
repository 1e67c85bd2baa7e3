"""All problems of a YAML file in one error, each with its line, its text and a caret."""

from collections.abc import Sequence
from typing import TypeVar

from labeldp_verify.printable import printable, width

from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import hidden
from labeldp_compile.yaml_source import Place, lines_of

MAX_SHOWN = 20
_BEFORE, _LINE = 60, 100  # characters of a line that are shown: at most before the caret, in all
_ELLIPSIS = "…"

Refusal = TypeVar("Refusal", bound=InputError)


def refusal_at(
    kind: type[Refusal],
    source: str,
    text: str,
    problems: Sequence[tuple[Place, str]],
    number: int | None = None,
) -> Refusal:
    """The error for one or more problems in a text; each is a place and a message.

    ``source`` names the text. The first problem is the error's message. Its notes, which tracebacks
    show too, are excerpts of the text, the other messages, and how many there are. ``number`` is
    that count if ``problems`` holds only those to show.
    """
    lines, shown = lines_of(text), problems[:MAX_SHOWN]
    messages = [f"{source}:{line}: {message}" for (line, _), message in shown]
    error = kind(messages[0])
    for message, (place, _) in zip(messages, shown, strict=True):
        if message is not messages[0]:
            error.add_note(printable(f"labeldp: {message}"))
        for excerpt in _excerpt(lines, *place):
            error.add_note(excerpt)
    number = number or len(problems)
    if number > 1:
        more = "" if number == len(shown) else f", of which {MAX_SHOWN} are shown"
        error.add_note(printable(f"labeldp: {source}: {number:,} errors{more}"))
    return error


def _excerpt(lines: Sequence[str], line: int, column: int) -> list[str]:
    """The line and a caret under the column; only a part of a long line."""
    text = hidden(lines[line - 1]) if line <= len(lines) else ""
    if not text.strip():
        return []
    # A tab is not printable, and its width depends on the terminal.
    before, rest = text[:column].replace("\t", " "), text[column:].replace("\t", " ")
    if len(before) > _BEFORE:
        before = _ELLIPSIS + before[-_BEFORE:]
    room = _LINE - len(before)
    if len(rest) > room:
        rest = rest[:room] + _ELLIPSIS
    number = f"{line:>6} | "
    caret = " " * width(number + printable(before)) + "^"
    return [number + printable(before + rest), caret]
