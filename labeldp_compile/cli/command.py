"""The frame of all commands: an error is one message and an exit code; an option is given once."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify.console.interrupts import EXIT_CODE, Interrupted, require_uninterrupted
from labeldp_verify.printable import one_line

from labeldp_compile.cli.output import complain, tell
from labeldp_compile.errors import InputError

if TYPE_CHECKING:
    from labeldp_verify import Report


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
