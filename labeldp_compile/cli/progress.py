"""Progress on the terminal; nothing when stderr is a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def row_progress(label: str, rows: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done since the last call."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    with click.progressbar(length=rows or 0, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update


def line_progress(*, quiet: bool) -> Callable[[str], None]:
    """A function that shows a line of text about a long solve."""
    if quiet or not sys.stderr.isatty():
        return lambda line: None
    return lambda line: click.echo(f"  {line}", err=True)
