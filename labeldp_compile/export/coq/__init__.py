"""A verified artifact as a Coq file: its integers, and the theorem that they are private.

``theory`` finds the general proofs (``proofs/``), ``script`` writes the part about one file with
the template ``artifact.v.jinja``, and ``coqc`` runs Coq on both.

Only numbers and digests of the artifact get into that part, because a name could end a comment.
"""

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify import Budget, check_bytes, read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.budget import OWN_FILES, TooLargeError, enforced, naming, no_memory
from labeldp_verify.claims import decimals, rational
from labeldp_verify.errors import read_at_most
from labeldp_verify.forms import RealDomain
from labeldp_verify.graph import tables_digest
from labeldp_verify.kernel import Integers, Lookup, Noise, Table, Window, counts, integers_of
from labeldp_verify.printable import one_line

from labeldp_compile.cli.command import DoesNotHoldError, command, does_not_verify, say, tell
from labeldp_compile.cli.options import (
    PATH,
    SignatureFiles,
    budget_option,
    overwrite_option,
    signature_options,
)
from labeldp_compile.errors import InputError
from labeldp_compile.page.document import text_of
from labeldp_compile.whole_file import require_output, write_text

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed


PREFIX = "LabelDP"
_OURS = re.compile(rf"^From {PREFIX} Require Import ([\w ]+)\.\n", re.M)
_COQS = re.compile(r"^From Coq Require Import ([\w ]+)\.\n", re.M)


def folder() -> Path:
    """The folder with the files."""
    shipped = Path(__file__).parent / "theory"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "proofs"


@cache
def source(name: str) -> str:
    """The text of one file."""
    return (folder() / f"{name}.v").read_text(encoding="utf-8")


def needed(names: Iterable[str]) -> list[str]:
    """These files and all that they need, each after what it needs."""
    found: dict[str, None] = {}
    for name in names:
        before = needed(_imports(_OURS, source(name)))
        found |= dict.fromkeys([*before, name])
    return list(found)


def modules(names: Iterable[str]) -> str:
    """The files as modules of one text, after the imports of Coq's standard library."""
    parts, libraries, files = [], {"ZArith": None, "List": None}, needed(names)
    for name in files:
        text = source(name)
        libraries |= dict.fromkeys(_imports(_COQS, text))
        body = _OURS.sub(lambda line: f"Import {line[1]}.\n", _COQS.sub("", text))
        parts.append(f"Module {name}.\n{body}End {name}.\n")
    above = f"From Coq Require Import {' '.join(libraries)}.\n\n"
    return above + "\n".join([*parts, f"Import {' '.join(files)}.\n"])


def required(names: Iterable[str]) -> str:
    """Imports of the same files, which Coq finds by ``-Q proofs LabelDP``."""
    return (
        "From Coq Require Import ZArith List QArith.\n"
        f"From {PREFIX} Require Import {' '.join(needed(names))}.\n"
    )


def _imports(pattern: re.Pattern[str], text: str) -> list[str]:
    return [name for line in pattern.findall(text) for name in line.split()]


_A_LINE = 8  # integers
_A_LIST = 500


def form_of(read: Integers, *, grouped: bool) -> tuple[str, dict[str, Any]]:
    """The theory file that a form needs, and the facts of its integers for the template.

    The lookup of a window is proved, too, if it is among the integers.
    """
    first = read.tables[0]
    if isinstance(first, Noise):
        return "Additives", {"form": "additive", "noise": first} | _drawn(first)
    if isinstance(first, Table):
        facts = {"form": "table", "table": first, "columns": _columns(first.rows[0])}
        return "Tables", facts
    windows = [_window(table) for table in read.tables if isinstance(table, Window)]
    if grouped or read.lookup is None:
        return "Windows", {"form": "grouped" if grouped else "window", "windows": windows}
    facts = {"form": "window", "windows": windows, "lookup": read.lookup}
    return "Lookups", facts | {"grids": _grids(read.lookup)}


def _window(window: Window) -> dict[str, Any]:
    place = {answer: i for i, (_, answer) in enumerate(window.base)}
    return {
        "bits": window.bits,
        "lengths": [length for length, _ in window.base],
        "segments": [f"({number(length)}, {place[answer]})" for length, answer in window.extra],
        "offsets": window.offsets,
    }


def _grids(read: Lookup) -> list[dict[str, Any]]:
    """The lookup of the graph: stretches of entries, in the layout of ``graph/bucket_grid.py``."""
    table, grids = list(read.entries), []
    for first, stop, shift, _ in read.stretches:
        size = ((stop - 1) >> shift) + 1 - (first >> shift)
        grids.append({"first": first, "stop": stop, "shift": shift, "entries": table[:size]})
        table = table[size:]
    return grids


def _drawn(r: Noise) -> dict[str, Any]:
    """The lists of weights and of alias-table entries, and c for tables of 2^c entries."""
    below, above = r.shape_entries
    entries = {"blocks_": r.block_entries, "below_": below, "above_": above}
    items = {"blocks_": 2 * r.half, "below_": r.period, "above_": r.period}
    weights = {name: counts(listed_, r.bits, items[name]) for name, listed_ in entries.items()}
    lists = weights | {f"{name}entries": listed_ for name, listed_ in entries.items()}
    return {"lists": lists, "columns": (_columns(r.block_entries), _columns(below))}


def _columns(entries: Sequence[int]) -> int:
    """c for a list of 2^c entries."""
    return len(entries).bit_length() - 1


def listed(name: str, items: Sequence[int] | Sequence[str], kind: str = "list Z") -> str:
    """The definition of a list; a long list comes in pieces, because Coq reads it recursively."""
    texts = [item if isinstance(item, str) else number(item) for item in items]
    pieces = [texts[i : i + _A_LIST] for i in range(0, len(texts), _A_LIST)] or [texts]
    names = [name] if len(pieces) == 1 else [f"{name}_{i}" for i in range(len(pieces))]
    parts = [
        f"Definition {part} : {kind} :=\n  [{_lines(piece)}]."
        for part, piece in zip(names, pieces, strict=True)
    ]
    if len(pieces) > 1:
        parts.append(f"Definition {name} : {kind} :=\n  {' ++ '.join(names)}.")
    return "\n".join(parts)


def _lines(items: Sequence[str]) -> str:
    rows = ["; ".join(items[i : i + _A_LINE]) for i in range(0, len(items), _A_LINE)]
    return ";\n   ".join(rows)


def number(number: int) -> str:
    """A number for Coq; long numbers in hexadecimal, which Coq reads faster."""
    text = hex(number) if abs(number) >= 1 << 20 else str(number)
    return f"({text})" if number < 0 else text


def size_of(read: Integers) -> int:
    """How many integers Coq would have to read."""
    size = 0
    for table in read.tables:
        if isinstance(table, Window):
            size += len(table.base) + 2 * len(table.extra) + len(table.offsets)
        elif isinstance(table, Table):
            size += sum(map(len, table.rows))
        else:
            size += 4 * table.half + 4 * table.period
    return size


def labels(read: Integers) -> int:
    """k, the number of labels."""
    first = read.tables[0]
    if isinstance(first, Window):
        return len(first.offsets)
    return len(first.rows) if isinstance(first, Table) else first.period // first.spacing + 1


MAX_INTEGERS = 100_000  # Coq reads about 1,500 a second
MAX_ENTRIES = 10_000  # of a lookup: Coq reads them for seven seconds
_MOST_TERMS = 5_000


@dataclass(frozen=True)
class Proof:
    """A Coq file about one artifact.

    Attributes:
        text: the file.
        epsilon: the ε that it proves for every label.
        theorems: the names of its theorems; Coq prints the assumptions of each.
    """

    text: str
    epsilon: Fraction
    theorems: tuple[str, ...]


def proof_of(
    decoded: Artifact,
    read: Integers,
    *,
    most_entries: int = MAX_ENTRIES,
    ratio: Fraction | None = None,
    self_contained: bool = True,
) -> Proof:
    """The Coq file about a verified artifact.

    Args:
        decoded: the verified file.
        read: its integers, as the kernel reads them.
        most_entries: if the lookup has at most this many entries, the draw of a window is the
            graph's gather from them; otherwise it goes through the segments.
        ratio: the ratio to prove; by default that of the certificate.
        self_contained: whether the theory is in the file; otherwise it needs
            ``-Q proofs LabelDP``.
    """
    certificate = decoded.certificate
    ratio = rational(certificate.exact.realised_ratio) if ratio is None else ratio
    epsilon = rational(certificate.exact.epsilon_label_bound)
    if read.lookup is not None and len(read.lookup.entries) > most_entries:
        read = read._replace(lookup=None)
    grouped, users = certificate.groups is not None, certificate.composition
    file, facts = form_of(read, grouped=grouped)
    files = (file, "Mixtures", "Epsilon")
    theorems = {
        "artifact_is_private": True,
        "private_at_any_offset": isinstance(read.tables[0], Window) and not grouped,
        "rounded_labels_are_private": isinstance(decoded.label, RealDomain)
        and decoded.label.rounding == "unbiased",
        "labels_of_one_person_are_private": users is not None and not grouped,
    }
    proved = tuple(name for name, holds in theorems.items() if holds)
    text = text_of(
        Path(__file__).with_name("artifact.v.jinja"),
        sha256=decoded.sha256,
        tables_sha256=tables_digest(decoded.label, decoded.lookup),
        theory=modules(files) if self_contained else required(files),
        listed=listed,
        number=number,
        ratio=ratio,
        epsilon=epsilon,
        terms=terms(ratio, epsilon),
        labels=labels(read),
        theorems=proved,
        labels_per_user=users and users.labels_per_user,
        **facts,
    )
    return Proof(text, epsilon, proved)


def terms(ratio: Fraction, epsilon: Fraction) -> int:
    """The smallest n for which the ratio is at most Σ εʲ/j! over j ≤ n. Raises ValueError if none.

    The proved ε is at least ln of the ratio, and larger unless the ratio is 1.
    """
    total = term = Fraction(1)
    for n in range(_MOST_TERMS):
        if ratio <= total:
            return n
        term = term * epsilon / (n + 1)
        # Sums are cut to 4,096 bits. Coq uses the exact sums, which are larger.
        total += _cut(term)
        term = _cut(term)
    raise ValueError("the ratio is not a lower bound of e^epsilon")


def _cut(number: Fraction) -> Fraction:
    return Fraction((number.numerator << 4096) // number.denominator, 1 << 4096)


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


__all__ = ["target"]
