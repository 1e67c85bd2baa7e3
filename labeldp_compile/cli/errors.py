"""Turn the errors that a user can mend into one message on stderr and exit code 2."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click
from labeldp_verify.console.interrupts import EXIT_CODE, Interrupted, require_uninterrupted
from labeldp_verify.printable import one_line

from labeldp_compile.cli.output import complain, tell
from labeldp_compile.errors import InputError


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Interrupted(128 + number)


@contextmanager
def printable_usage_errors() -> Iterator[None]:
    """Click quotes the arguments in its own messages, and they may be names of files."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:  # whose message is the help
        raise
    except click.ClickException as error:
        error.message = one_line(error.message)  # type: ignore[misc]  # click forbids it to types only
        raise


def _taking_options_once(command: click.Command) -> None:
    """An option that is given twice is an error: click would keep the last one, without a word."""
    make = command.make_parser

    def make_parser(ctx: click.Context) -> Any:
        parser = make(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            parsed = parse(args)
            seen = set()
            for parameter in parsed[2]:  # in the order in which they were given
                if parameter.name in seen and _is_single(parameter):
                    name = max(parameter.opts, key=len)
                    raise click.UsageError(f"{name} is given more than once, and takes one", ctx)
                seen.add(parameter.name)
            return parsed

        if not ctx.resilient_parsing:
            parser.parse_args = parse_args  # type: ignore[method-assign]
        return parser

    command.make_parser = make_parser  # type: ignore[method-assign]


def _is_single(parameter: click.Parameter) -> bool:
    if not isinstance(parameter, click.Option):
        return False
    return not (parameter.multiple or parameter.is_flag or parameter.count)


def explained(command: click.Command) -> click.Command:
    """The same command, whose InputErrors are messages and not tracebacks.

    And which takes no option twice that has one value.
    """
    _taking_options_once(command)
    run = command.callback
    assert run is not None

    @functools.wraps(run)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # A terminal or pipe that cannot show ε must not turn an answer into an error; and a
        # polite kill must let unfinished files be removed.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            return run(*args, **kwargs)
        except InputError as error:
            require_uninterrupted(error)
            complain(str(error))
            tell(*getattr(error, "__notes__", ()))
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            # The end of the input at a question; or ^C in a process that did not begin with
            # ``interrupts.run``. Click would exit with 1: the thing checked does not hold.
            tell("", "labeldp: interrupted")
            sys.exit(EXIT_CODE)
        except OSError as error:
            require_uninterrupted(error)
            # Our own output cannot be written: its reader has gone, or the disk is full.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                complain(str(error.strerror or error))
            sys.exit(2)

    command.callback = wrapper
    return command
