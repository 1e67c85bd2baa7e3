"""Turn the errors that a user can mend into one message on stderr and exit code 2."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import click

from labeldp_compile.errors import InputError


def explained(command: click.Command) -> click.Command:
    """The same command, whose InputErrors are messages and not tracebacks."""
    run = command.callback
    assert run is not None

    @functools.wraps(run)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except InputError as error:
            click.echo(f"labeldp: {error}", err=True)
            sys.exit(2)
        except BrokenPipeError:
            # The reader of our output has gone: nothing to say, and nothing more to write.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    command.callback = wrapper
    return command
