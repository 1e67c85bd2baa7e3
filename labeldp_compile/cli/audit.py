"""``labeldp audit``: try a running randomizer, and say what its outputs give away."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np
from labeldp_verify import Budget, VerificationError

from labeldp_compile.cli.file_options import budget_option
from labeldp_compile.cli.group_options import group_option
from labeldp_compile.cli.number_options import Number, Whole
from labeldp_compile.cli.output import complain, row_progress, say, say_json
from labeldp_compile.errors import InputError
from labeldp_compile.observer import Observer
from labeldp_compile.tools.audit.audit import (
    MIN_SAMPLES,
    AuditClaim,
    audit,
    audit_artifact,
    choose_labels,
)
from labeldp_compile.tools.audit.report import ERROR, AuditReport
from labeldp_compile.tools.audit.target import AuditTarget, FunctionTarget, parse_labels

DEFAULT_SAMPLES = 10_000_000
_MAX_EPSILON = 1000.0
_MARKS = {True: "ok    ", False: "FAILED", None: "?     "}


@click.command(
    "audit",
    epilog="\b\nExample:\n  labeldp audit build/doctor-visits.onnx --samples 1000000",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--callable",
    "function",
    metavar="MODULE:FUNCTION",
    help="Audit this function (array of labels → array of outputs) instead; with FILE, against it.",
)
@click.option("--labels", metavar="0..52 | a,b,c", help="With --callable alone: the labels to try.")
@click.option("--epsilon", type=Number(), help="With --callable alone: the ε that it claims.")
@click.option(
    "--samples",
    type=Whole(min=MIN_SAMPLES),
    default=DEFAULT_SAMPLES,
    show_default=True,
    help="Labels to randomize.",
)
@group_option
@click.option("--no-processes", is_flag=True, help="Start no other processes.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@budget_option
def audit_command(
    file: Path | None,
    function: str | None,
    labels: str | None,
    epsilon: float | None,
    samples: int,
    group: str | None,
    no_processes: bool,
    as_json: bool,
    quiet: bool,
    budget: Budget,
) -> None:
    """Randomize made-up labels, and test the outputs against what FILE certifies.

    A statistical test of the running randomizer, beside the proof that verify gives for the file.
    It looks for the most telling output, for rows or processes that share their words, and for
    outputs that depend on other rows. No real label is needed. With a table for each group, one is
    audited: that with most rows, or that of --group.

    Exit code 0 if nothing was found, 1 if something was (a faultless randomizer: once in a million
    audits), 2 if the input is wrong.
    """
    with row_progress("sampling", samples, quiet=quiet) as progress:
        observer = Observer(rows=progress)
        if file is None:
            target, tried, claim = _claimed(function, labels, epsilon)
            report = audit(target, tried, claim, samples, observer, processes=not no_processes)
        elif labels is not None or epsilon is not None:
            raise InputError("--labels and --epsilon come from FILE: leave them out")
        else:
            try:
                report = audit_artifact(
                    file,
                    function,
                    samples=samples,
                    observer=observer,
                    processes=not no_processes,
                    budget=budget,
                    group=group,
                )
            except VerificationError as error:
                complain(f"{file}: does not verify, and is not run: {error}")
                sys.exit(1)
    if as_json:
        say_json(report.to_json())
    else:
        say(*_in_words(report))
    sys.exit(0 if report.ok else 1)


def _claimed(
    function: str | None, labels: str | None, epsilon: float | None
) -> tuple[AuditTarget, np.ndarray[tuple[int], np.dtype[np.generic]], AuditClaim]:
    if function is None:
        raise InputError("give an artifact FILE, or --callable MODULE:FUNCTION")
    if labels is None or epsilon is None:
        raise InputError("--callable needs --labels and --epsilon, or a FILE to compare with")
    if not 0 <= epsilon <= _MAX_EPSILON:
        raise InputError(f"--epsilon: {epsilon:g} does not lie in 0 … {_MAX_EPSILON:g}")
    every = parse_labels(labels)
    tried = every[choose_labels(len(every))]
    return FunctionTarget(function), tried, AuditClaim(epsilon, "claimed", len(every))


def _in_words(report: AuditReport) -> list[str]:
    tried, every = report.labels
    some = f"{tried:,} of {every:,}" if tried < every else f"{every:,}"
    lines = [
        f"{report.audited}: {report.samples:,} samples of {some} labels; error at most {ERROR:g}",
        *(f"{_MARKS[f.ok]} {f.name:<12} {f.detail}" for f in report.findings),
    ]
    if not report.ok:
        return [*lines, "VIOLATION. Do not use this randomizer."]
    return [*lines, "nothing found, which proves nothing: labeldp verify proves"]
