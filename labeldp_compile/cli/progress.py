"""A row counter on the terminal; nothing when stderr is a file or a pipe."""

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
