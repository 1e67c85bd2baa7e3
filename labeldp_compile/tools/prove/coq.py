"""Coq's answer to a file. It is asked in a folder of its own, which is removed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError

PROGRAM = "coqc"
_CLOSED = "Closed under the global context"
_NAME = "artifact.v"
_SHOWN = 200


@dataclass(frozen=True)
class CoqAnswer:
    """What Coq says of a proof: ``accepted``, or else ``why`` not, in one printable line."""

    accepted: bool
    why: str = ""


def coq_version() -> str | None:
    """The version of Coq on the path, or None where there is none."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # found on the path, our own argument
            [program, "--print-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError):
        return None
    found = re.match(r"[\d.]+\w*", done.stdout)
    return None if found is None else found[0]


def run_coq(text: str, theorems: int, *, options: Sequence[str] = ()) -> CoqAnswer:
    """Have Coq check a file whose ``theorems`` must all rest on nothing.

    Raises InputError where there is no Coq.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise InputError(f"there is no {PROGRAM} on the path: install Coq")
    with tempfile.TemporaryDirectory(prefix="labeldp.") as folder:
        Path(folder, _NAME).write_text(text, encoding="utf-8")
        done = subprocess.run(  # noqa: S603  # found on the path, our own arguments
            [program, "-q", *options, _NAME],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode:
        return CoqAnswer(False, one_line(_error(done.stderr))[:_SHOWN])
    rests_on = done.stdout.strip().splitlines()
    if rests_on != [_CLOSED] * theorems:
        return CoqAnswer(False, "the proof rests on something that is not proved")
    return CoqAnswer(True)


def _error(stderr: str) -> str:
    """From the first error on, without what it points at."""
    _, found, rest = stderr.partition("Error:")
    return " ".join(rest.split()) if found else "coqc did not finish"
