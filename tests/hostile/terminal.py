"""A pseudo-terminal: what a command really sends to a person's screen."""

import importlib
import os
import pty
import re
import resource
import signal
import sys

import click

from labeldp_compile.cli import main

# The terminal ends its lines with \r\n; the colours are those of ``report``, and the rest is the
# bar of progress, which begins its line anew and hides the cursor.
_OURS = re.compile(
    rb"\r\n|(?<![^\n])\x1b\[(?:32|33|1;31)m|\x1b\[48;5;[0-9]{1,3}m|\x1b\[0m"
    rb"|\r?\x1b\[\?25[lh]|\r(?=randomizing |  [a-z]+: )"
)
# Loaded before the children are made, so that none has to: each takes its time.
_context = click.Context(main)
for _name in main.list_commands(_context):
    main.get_command(_context, _name)
for _module in (
    "dp_accounting",
    "pandas",
    "labeldp_compile.report.page",
    "labeldp_compile.sweeps.page",
    "labeldp_trainer.cli",
):
    importlib.import_module(_module)


def on_terminal(*arguments, memory=None):
    """(bytes, exit code) of ``labeldp`` on a terminal; the command runs in a forked child.

    ``memory`` limits the bytes of its address space.
    """
    child, terminal = pty.fork()
    if child == 0:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        _run([str(argument) for argument in arguments])
    sent = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # the child has closed its end
            break
        if not part:
            break
        sent += part
    os.close(terminal)
    return sent, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(arguments):
    """In the child; never returns."""
    code = 70
    try:
        signal.alarm(600)
        os.environ.update(COLUMNS="100", LINES="40", TERM="xterm-256color")
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        main(arguments, prog_name="labeldp")
    except SystemExit as error:
        code = error.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def lines_of(sent):
    """The lines of what was sent, without line ends and our own colours."""
    return _OURS.sub(lambda m: b"\n" if m.group() == b"\r\n" else b"", sent).decode().split("\n")
