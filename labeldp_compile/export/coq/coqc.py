"""Run Coq on a file, in a temporary folder."""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labeldp_verify.budget import OWN_FILES, Budget, TooLargeError, no_memory
from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError

PROGRAM = "coqc"
_CLOSED = "Closed under the global context"
_NAME = "artifact.v"
_SHOWN = 200
_WAITING = 5


@dataclass(frozen=True)
class CoqAnswer:
    """Whether Coq accepted a proof, or else ``why`` not, in one printable line."""

    accepted: bool
    why: str = ""


def coq_version() -> str | None:
    """The version of Coq on the path, or None if there is none that runs."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # found on the path, our own argument
            [program, "--print-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.match(r"[\d.]+\w*", done.stdout)
    return None if found is None else found[0]


def run_coq(
    text: str, theorems: int, *, options: Sequence[str] = (), budget: Budget = OWN_FILES
) -> CoqAnswer:
    """Let Coq check a file with ``theorems`` theorems, none of which may rest on an assumption.

    Raises InputError if there is no Coq, and TooLargeError at the end of the budget (processor time
    and memory); the proof may still be right then.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise InputError(f"{PROGRAM} is not on the path: install Coq 8.16 or newer")
    with tempfile.TemporaryDirectory(prefix="labeldp.") as folder:
        Path(folder, _NAME).write_text(text, encoding="utf-8")
        code, stdout, stderr = _within(budget, [program, "-q", *options, _NAME], folder)
    if code:
        return CoqAnswer(False, one_line(_error(stderr))[:_SHOWN])
    rests_on = stdout.strip().splitlines()
    if rests_on != [_CLOSED] * theorems:
        return CoqAnswer(False, "the proof rests on an assumption")
    return CoqAnswer(True)


def _within(budget: Budget, command: Sequence[str], folder: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, which is killed with its children at the end.

    A process that only waits uses no processor time, so it has five times the seconds by the clock.
    """
    process = subprocess.Popen(  # noqa: S603  # found on the path, our own arguments
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # with its children, and without the terminal's ^C
    )
    try:
        _limit(process.pid, budget)
        stdout, stderr = process.communicate(timeout=_WAITING * budget.seconds)
    except BaseException as error:  # ^C, too
        _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise _too_late(budget) from None
        raise
    code = process.returncode
    if sys.platform != "win32" and signal.SIGXCPU in (-code, code - 128):
        raise _too_late(budget)
    if code and "Out of memory" in stderr:
        raise no_memory(budget)
    return code, stdout, stderr


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and its children, before waiting for it: until then its id is not reused."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _limit(process: int, budget: Budget) -> None:
    """The kernel's limits on a process and its future children; only on Linux."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415

        seconds = max(1, math.ceil(budget.seconds))
        with contextlib.suppress(ProcessLookupError):  # it is done already
            resource.prlimit(process, resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.prlimit(process, resource.RLIMIT_DATA, (budget.bytes, budget.bytes))


def _too_late(budget: Budget) -> TooLargeError:
    return TooLargeError(
        f"not checked: Coq takes longer than the {budget.seconds:,.0f} s of processor time that "
        "were left after verifying the file; give more with --budget SECONDS,BYTES"
    )


def _error(stderr: str) -> str:
    """The message from the first error on, without its location."""
    _, found, rest = stderr.partition("Error:")
    return " ".join(rest.split()) if found else "coqc did not finish"
