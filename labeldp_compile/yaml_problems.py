"""All that is wrong with a YAML file in one error: each with its line, its text and a caret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from labeldp_verify.printable import printable, width

from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import hidden
from labeldp_compile.yaml_source import KeyPath, YamlSource
from labeldp_compile.yaml_tree import lines_of

MAX_SHOWN = 20
_BEFORE, _LINE = 60, 100  # characters of a line that are shown: at most before the caret, in all
_ELLIPSIS = "…"


@dataclass(frozen=True)
class Misplaced:
    """What is wrong with the key, or item, at a path."""

    path: KeyPath
    message: str


Refusal = TypeVar("Refusal", bound=InputError)


def refusal(
    kind: type[Refusal],
    source: str,
    yaml: YamlSource,
    problems: Sequence[Misplaced],
    number: int | None = None,
) -> Refusal:
    """The error of one problem or more; its message is that of the first.

    ``number`` is how many there are, where ``problems`` are only those to show.
    """
    places = [(*yaml.place(problem.path), problem.message) for problem in problems]
    return refusal_at(kind, source, yaml.text, places, number)


def refusal_at(
    kind: type[Refusal],
    source: str,
    text: str,
    places: Sequence[tuple[int, int, str]],
    number: int | None = None,
) -> Refusal:
    """The same for (line from 1, column from 0, message).

    What follows the first message are the notes of the exception, which tracebacks show, too:
    excerpts of the text, the other messages, and how many there are.
    """
    lines, shown = lines_of(text), places[:MAX_SHOWN]
    messages = [f"{source}:{line}: {message}" for line, _, message in shown]
    error = kind(messages[0])
    for message, (line, column, _) in zip(messages, shown, strict=True):
        if message is not messages[0]:
            error.add_note(printable(f"labeldp: {message}"))
        for excerpt in _excerpt(lines, line, column):
            error.add_note(excerpt)
    number = number or len(places)
    if number > 1:
        more = "" if number == len(shown) else f", of which {MAX_SHOWN} are shown"
        error.add_note(printable(f"labeldp: {source}: {number:,} errors{more}"))
    return error


def _excerpt(lines: Sequence[str], line: int, column: int) -> list[str]:
    """The line and a caret under the column; of a long line the part about it."""
    text = hidden(lines[line - 1]) if line <= len(lines) else ""
    if not text.strip():
        return []
    # A tab is no character that the door lets through, and its width is the terminal's secret.
    before, rest = text[:column].replace("\t", " "), text[column:].replace("\t", " ")
    if len(before) > _BEFORE:
        before = _ELLIPSIS + before[-_BEFORE:]
    room = _LINE - len(before)
    if len(rest) > room:
        rest = rest[:room] + _ELLIPSIS
    number = f"{line:>6} | "
    caret = " " * width(number + printable(before)) + "^"
    return [number + printable(before + rest), caret]
