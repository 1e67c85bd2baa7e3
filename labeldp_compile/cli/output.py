"""Writes all text for the terminal, line by line, without control characters.

Code that builds a line from a file's strings may forget to make them printable. So a line break or
a control sequence inside a line is always shown as U+FFFD here.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

import click
from labeldp_verify.printable import clipped, json_text, one_line, printable, rendered, width

if TYPE_CHECKING:
    from labeldp_compile.observer import Observer

NUMBERS_OF_SETS = (
    "each private label is the number of a set of labels, so that GROUP BY, counts and means of it "
    "say nothing; labeldp estimate and labeldp train undo it. For labels instead, write "
    "mechanism: {kind: randomized_response}"
)


def say(*lines: str) -> None:
    """Write lines of the result to stdout; a ``Marked`` line is coloured on a terminal."""
    click.echo("\n".join(rendered(line, sys.stdout) for line in lines))


def say_json(document: Any) -> None:
    """Write the result as JSON to stdout."""
    click.echo(json_text(document))


def show(as_json: bool, document: Callable[[], Any], in_words: Callable[[], Sequence[str]]) -> None:
    """Write the result to stdout, as JSON or as lines."""
    if as_json:
        say_json(document())
    else:
        say(*in_words())


def tell(*lines: str) -> None:
    """Write diagnostics to stderr."""
    if not lines:
        return
    click.echo("\n".join(rendered(line, sys.stderr) for line in lines), err=True)


def can_show(text: str, stream: TextIO) -> bool:
    """Whether a terminal or pipe can show these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def complain(message: str) -> None:
    """Write one line to stderr that says what is wrong; a very long line is cut."""
    click.echo(f"labeldp: {one_line(message)}", err=True)


_SECONDS_BETWEEN = 0.2


@contextmanager
def row_progress(label: str, rows: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done since the last call."""
    if quiet or not sys.stderr.isatty():
        yield lambda rows: None
    elif rows:
        with click.progressbar(length=rows, label=label, file=sys.stderr, show_pos=True) as bar:
            yield bar.update
    else:
        yield _counter(label)


@contextmanager
def observing(
    label: str, rows: int | None = None, *, quiet: bool, say: Callable[[str], None] | None = None
) -> Iterator["Observer"]:
    """An observer that shows rows and steps on a terminal, and reports spending to ``say``."""
    from labeldp_compile.observer import QUIET, Observer  # noqa: PLC0415

    shows_steps = not quiet and sys.stderr.isatty()
    with row_progress(label, rows, quiet=quiet) as progress:
        step = (lambda line: tell(f"  {line}")) if shows_steps else QUIET.step
        yield Observer(rows=progress, step=step, say=say or QUIET.say)


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


__all__ = ["clipped", "padded", "printable", "text_table", "width"]


def once_spent(epsilon_prior: float) -> str:
    """Which label spends the total ε, given that of the prior."""
    return f"for a label that is {'counted and ' * (epsilon_prior > 0)}randomized once"


def fact(name: str, text: str) -> str:
    """A line of a summary: what it is about, and what is known of it."""
    return f"  {name:<17} {text}"


def padded(text: str, columns: int, *, left: bool = False) -> str:
    """The text padded to ``columns`` columns, right-justified unless ``left``."""
    space = " " * (columns - width(text))
    return text + space if left else space + text


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> list[str]:
    """Lines of a table; the columns in ``left`` are left-justified, the others right-justified."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(width, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            padded(cell, columns, left=i in left)
            for i, (cell, columns) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in chain([header], rows)
    ]
