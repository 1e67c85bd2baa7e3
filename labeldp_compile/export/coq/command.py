"""``labeldp export --to coq``: the integers of an artifact, with a proof that Coq checks."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify import Budget, check_bytes, read_artifact
from labeldp_verify.budget import OWN_FILES, TooLargeError, enforced, naming, no_memory
from labeldp_verify.claims import decimals
from labeldp_verify.errors import read_at_most
from labeldp_verify.kernel import integers_of
from labeldp_verify.printable import one_line

from labeldp_compile.cli.command import DoesNotHoldError, command, does_not_verify
from labeldp_compile.cli.options import (
    PATH,
    SignatureFiles,
    budget_option,
    overwrite_option,
    signature_options,
)
from labeldp_compile.cli.output import say, tell
from labeldp_compile.errors import InputError
from labeldp_compile.export.coq.proof import MAX_INTEGERS, Proof, proof_of, size_of
from labeldp_compile.whole_file import require_output, write_text

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed


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
    version = re.match(r"[\d.]+\w*", done.stdout)
    return None if version is None else version[0]


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
    _, mark, rest = stderr.partition("Error:")
    return " ".join(rest.split()) if mark else "coqc did not finish"


_INSTALL = "install Coq 8.16 or newer"
_OUTSIDE = (
    "The proof does not cover two things: that the graph computes these integers (labeldp verify "
    "rebuilt the file from them, byte for byte, and ran it around its thresholds), and that random "
    "bits are uniform, secret and used once."
)


@command(
    "coq",
    "labeldp export --to coq build/doctor-visits.onnx -o doctor_visits.v",
    "labeldp export --to coq build/doctor-visits.onnx --check doctor_visits.v",
)
@click.argument("file", type=PATH)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The Coq file to write (.v). Coq requires a name of letters, digits and _.",
)
@click.option(
    "--check",
    "given",
    type=PATH,
    metavar="X.v",
    help="Write nothing; compare this Coq file with what FILE gives, byte for byte.",
)
@signature_options
@overwrite_option
@budget_option
def target(
    file: Path,
    output: Path | None,
    given: Path | None,
    signing: SignatureFiles,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Write the integers of the artifact FILE, and a proof that they are private, for Coq.

    FILE is verified first. The Coq file needs only Coq 8.16 or newer. If coqc is on the path, it
    checks the file, within the budget that is left after verifying. A Coq file alone proves nothing
    about the artifact that it names, because anyone can write one. --check compares it with what
    FILE gives.

    Exit code 0: Coq accepts the proof; or -o wrote it where Coq is not installed, and the command
    says that nothing was checked. Exit code 1: FILE does not verify, Coq rejects the proof (then
    nothing is written), or X.v is a different file. Exit code 2: a file cannot be read, or is too
    large for Coq or the budget; or --check finds no Coq.
    """
    if (output is None) == (given is None):
        raise click.UsageError("give -o to write a Coq file, or --check to compare one")
    if output is not None:
        _require_name(output)
        require_output(output, file, overwrite=overwrite)
    elif overwrite:
        raise click.UsageError("--overwrite needs -o")
    signed, began = signing.signed(file), time.process_time()
    proof, count = _proof_of(file, signed, budget)
    if given is not None:
        _require_same(file, given, proof.text.encode())
    version = coq_version()
    if version is not None:
        tell(f"Coq {version} checks {count:,} integer{'s' * (count != 1)}; this takes some seconds")
        left = replace(budget, seconds=budget.seconds - (time.process_time() - began))
        with naming(file):
            answer = run_coq(proof.text, len(proof.theorems), budget=left)
        if not answer.accepted:
            reason = f"{file}: Coq {version} does not accept the proof: {answer.why}"
            raise DoesNotHoldError(reason)
    if output is not None:
        write_text(output, proof.text)
        _say_written(output, proof, version)
    if given is not None:
        say(f"{given}: equals the proof about this artifact, byte for byte")
        if version is None:
            raise InputError(f"{given}: Coq did not check it: coqc is not on the path; {_INSTALL}")
        _say_checked(given, proof, version)
    tell(_OUTSIDE)


def _proof_of(file: Path, signed: Signed | None, budget: Budget) -> tuple[Proof, int]:
    """The proof about FILE, and its number of integers. Exits with 1 if FILE does not verify."""
    data = read_artifact(file)
    with naming(file), enforced(budget):
        report = check_bytes(data, None, signed, budget)
    decoded = report.artifact
    if decoded is None:
        raise does_not_verify(file, report)
    read = integers_of(data)
    count = size_of(read)
    if count > MAX_INTEGERS:
        raise InputError(
            f"{file}: has {count:,} integers, too many for Coq to read in reasonable time; the "
            f"limit is {MAX_INTEGERS:,}"
        )
    return proof_of(decoded, read), count


def _require_same(file: Path, given: Path, expected: bytes) -> None:
    """Exit with 1 unless ``given`` holds these bytes. Raises InputError if it cannot be read."""
    if read_at_most(given, len(expected) + 1) != expected:
        raise DoesNotHoldError(
            f"{given}: IS NOT THE PROOF ABOUT {file}. Even if Coq accepts it, it proves nothing "
            "about this artifact: it is about another artifact, was altered, or was written by "
            "another version of labeldp. Write it again with -o"
        )


def _say_written(path: Path, proof: Proof, version: str | None) -> None:
    if version is not None:
        _say_checked(path, proof, version)
        return
    say(f"{path}: written; nothing was checked, because coqc is not on the path")
    bound = decimals(proof.epsilon)
    tell(f"It states ε ≤ {bound}. To check it, {_INSTALL}, and run: coqc {path.name}")


def _say_checked(path: Path, proof: Proof, version: str) -> None:
    bound = decimals(proof.epsilon)
    say(f"machine-checked: ε ≤ {bound} (Coq {version}, resting on no assumption), {path}")


def _require_name(output: Path) -> None:
    """Raise InputError unless Coq can name a module after the file."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*\.v", output.name, re.ASCII):
        safe = re.sub(r"\W", "_", output.stem, flags=re.ASCII).lstrip("_0123456789") or "artifact"
        raise InputError(
            f"{output}: Coq requires a name of letters, digits and _ that ends in .v, such as "
            f"{safe}.v"
        )
