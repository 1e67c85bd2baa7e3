"""The one way of words to the terminal: line by line, and no line holds what a terminal obeys.

Whoever builds a line out of a file's strings may forget to make them printable. Here nobody can: a
line break or a control sequence inside a line is shown as U+FFFD. Only a ``Painted`` line, which is
ours, keeps its colours.
"""

from __future__ import annotations

from typing import Any

import click
from labeldp_verify.printable import json_text, one_line, printable


class Painted(str):
    """A line with colours of our own, made of text that is printable already."""

    __slots__ = ()


def say(*lines: str) -> None:
    """Lines of the answer, on stdout."""
    click.echo("\n".join(map(_safe, lines)))


def say_json(document: Any) -> None:
    """The answer as JSON, on stdout."""
    click.echo(json_text(document))


def tell(*lines: str) -> None:
    """Lines for people, on stderr."""
    click.echo("\n".join(map(_safe, lines)), err=True)


def complain(message: str) -> None:
    """One line on stderr that says what is wrong; a very long one is cut."""
    click.echo(f"labeldp: {one_line(message)}", err=True)


def _safe(line: str) -> str:
    return line if isinstance(line, Painted) else printable(line)
