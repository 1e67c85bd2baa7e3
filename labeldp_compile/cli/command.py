"""The frame of all commands: an error is one message and an exit code; an option is given once.

All text for the terminal is written here, line by line, without control characters. Code that
builds a line from a file's strings may forget to make them printable. So a line break or a control
sequence inside a line is always shown as U+FFFD here.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click
from labeldp_verify.console.interrupts import EXIT_CODE, Interrupted, require_uninterrupted
from labeldp_verify.printable import clipped, json_text, one_line, printable, rendered, width

from labeldp_compile.errors import InputError

if TYPE_CHECKING:
    from labeldp_verify import Report

    from labeldp_compile.check import Judged, LoadedPolicy
    from labeldp_compile.observer import Observer
    from labeldp_compile.project import Project


NUMBERS_OF_SETS = (
    "each private label is the number of a set of labels. Read it with labeldp estimate or labeldp "
    "train: GROUP BY, counts and means of the number say nothing. To get labels instead, write "
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
) -> Iterator[Observer]:
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


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Interrupted(128 + number)


class DoesNotHoldError(InputError):
    """The input can be read, but a check of it fails."""

    exit_code = 1


@contextmanager
def verified(file: Path, consequence: str = "") -> Iterator[None]:
    """Turn a VerificationError into a DoesNotHoldError that names the artifact FILE."""
    from labeldp_verify import VerificationError  # noqa: PLC0415  # numpy

    try:
        yield
    except VerificationError as error:
        raise DoesNotHoldError(f"{file}: does not verify{consequence}: {error}") from error


def does_not_verify(file: Path, report: Report) -> DoesNotHoldError:
    """The error for an artifact that fails a check."""
    failed = next(check for check in report.checks if not check.ok)
    return DoesNotHoldError(
        f"{file}: DOES NOT VERIFY. Do not use this file. {failed.name}: {failed.detail}"
    )


def using_project(folder: Path, *, quiet: bool = False) -> Project | None:
    """The project file of a folder, which the first line names. Raises SpecError."""
    from labeldp_compile.project import find_project  # noqa: PLC0415

    project = find_project(folder)
    if project is not None and not quiet:
        tell(project.in_words())
    return project


def require_met(judged: Judged, policy: LoadedPolicy) -> None:
    """Raise DoesNotHoldError if a file does not meet a policy; its notes are further rules."""
    if not judged.failed:
        return
    first, *others = (f"{one.rule}: {one.text}" for one in judged.failed)
    error = DoesNotHoldError(f"{judged.path}: NOT ALLOWED by {policy.path}: {first}")
    for other in others:
        error.add_note(f"labeldp: {judged.path}: {other}")
    raise error


@contextmanager
def printable_usage_errors() -> Iterator[None]:
    """Make click's messages printable: they quote arguments, which may be names of files."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:  # its message is the help
        raise
    except click.ClickException as error:
        error.message = one_line(error.message)  # type: ignore[misc]  # click forbids it to types only
        raise


class Command(click.Command):
    """A command that explains its errors, and refuses an option with one value given twice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options. Raises UsageError if one is repeated; click would take the last."""
        if not ctx.resilient_parsing:
            seen = set()
            for parameter in self.make_parser(ctx).parse_args(list(args))[2]:
                if parameter in seen and _is_single(parameter):
                    name = max(parameter.opts, key=len)
                    raise click.UsageError(f"{name} is given more than once: give it once", ctx)
                seen.add(parameter)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an InputError becomes a message and its exit code."""
        # A terminal or pipe that cannot show ε must not turn a result into an error. SIGTERM must
        # leave time to remove unfinished files.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            return super().invoke(ctx)
        except InputError as error:
            require_uninterrupted(error)
            complain(str(error))
            tell(*getattr(error, "__notes__", ()))
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            # The input ended at a prompt, or ^C came in a process that was not started by
            # ``interrupts.run``. Click would exit with 1, which means that a check failed.
            tell("", "labeldp: interrupted")
            sys.exit(EXIT_CODE)
        except OSError as error:
            require_uninterrupted(error)
            # The output cannot be written: its reader has gone, or the disk is full.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                complain(str(error.strerror or error))
            sys.exit(2)


def _is_single(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not (
        parameter.multiple or parameter.is_flag or parameter.count
    )


class Group(click.Group):
    """Lists its commands in the order of use, with their complete short helps."""

    command_class = Command

    def helps(self) -> dict[str, str]:
        """The short help of each command."""
        return {name: one.get_short_help_str(1000) for name, one in self.commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of use."""
        return list(self.helps())

    def headings(self) -> Mapping[str, Sequence[str]]:
        """The names of the commands under the headings of the list."""
        return {"Commands": list(self.helps())}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands; click would cut off their helps."""
        widest = max(map(len, self.helps()))
        for heading, names in self.headings().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), self.helps()[name]) for name in names])


def example(*lines: str) -> str:
    """The end of a help text: examples of the command, as typed."""
    return "\n".join(["\b", f"Example{'s' * (len(lines) > 1)}:", *(f"  {line}" for line in lines)])


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], Command]:
    """Decorator that makes a function a command."""
    settings = {"help_option_names": ["-h", "--help"]}
    return click.command(name, Command, context_settings=settings, epilog=example(*examples))
