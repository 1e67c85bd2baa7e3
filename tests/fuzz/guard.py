"""Run one command in this process: no traceback, only messages, never more than some seconds."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner, Result

from labeldp_compile.cli import main

_EXCERPT = re.compile(r" *\d+ \| .*| *\^")
SECONDS = 5  # of processor time, so that a busy machine is not taken for a hang


class HangError(BaseException):
    """The command took too long. No ``except Exception`` may swallow it."""


class FoundError(AssertionError):
    """The command did what it must never do."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise HangError after ``SECONDS`` of processor time."""

    def stop(*_: Any) -> None:
        raise HangError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def labeldp(*arguments: object, codes: tuple[int, ...]) -> Result:
    """The result of a command, after a look at its manners.

    Raises FoundError for a traceback, an exit code that is not among ``codes``, an error that
    is no message (or messages about places of a spec, with their lines and carets), or a hang.
    """
    words = [str(argument) for argument in arguments]
    try:
        with limited():
            result = CliRunner().invoke(main, words)
    except HangError as error:
        raise FoundError(f"{words}: {error}") from None
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise FoundError(f"{words}: {result.exception!r}") from result.exception
    if result.exit_code not in codes or "Traceback" in result.output:
        raise FoundError(f"{words}: exit code {result.exit_code}: {result.output}")
    if result.exit_code == 2:
        lines = [line for line in result.stderr.split("\n")[:-1] if not _EXCERPT.fullmatch(line)]
        messages = bool(lines) and all(line.startswith("labeldp: ") for line in lines)
        in_spec = lines and lines[-1].endswith((" errors", " errors, of which 20 are shown"))
        if not messages or (len(lines) > 1 and not in_spec) or result.stdout:
            raise FoundError(f"{words}: not one message: {result.stdout!r} {result.stderr!r}")
    return result
