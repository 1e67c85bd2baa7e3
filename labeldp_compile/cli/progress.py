"""Progress on the terminal; nothing when stderr is a file or a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from labeldp_compile.cli.output import tell

_SECONDS_BETWEEN = 0.2


@contextmanager
def row_progress(label: str, rows: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done since the last call."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
    elif rows:
        with click.progressbar(length=rows, label=label, file=sys.stderr, show_pos=True) as bar:
            yield bar.update
    else:
        yield _counter(label)


def line_progress(*, quiet: bool) -> Callable[[str], None]:
    """A function that shows a line of text about a long solve."""
    if quiet or not sys.stderr.isatty():
        return lambda line: None
    return lambda line: tell(f"  {line}")


def _counter(label: str) -> Callable[[int], None]:
    """Counts rows of a table whose length is not known."""
    total, shown = 0, 0.0

    def count(done: int) -> None:
        nonlocal total, shown
        total += done
        if time.monotonic() - shown > _SECONDS_BETWEEN:
            shown = time.monotonic()
            click.echo(f"\r  {label}: {total:,} rows \r", err=True, nl=False)

    return count
