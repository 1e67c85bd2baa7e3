"""``labeldp verify``: what the file proves, in plain words or as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from labeldp_verify import Budget
from labeldp_verify.budget import enforced, naming

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.output import say, say_json
from labeldp_compile.spec_match import check_file


@click.command(
    "verify",
    epilog="\b\nExample:\n"
    "  labeldp verify build/doctor-visits.onnx --spec specs/doctor-visits.yaml",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--spec", type=click.Path(path_type=Path), help="Also check that FILE was made from this spec."
)
@signature_options
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@budget_option
def verify_command(
    file: Path,
    spec: Path | None,
    public_key: Path | None,
    signature: Path | None,
    as_json: bool,
    budget: Budget,
) -> None:
    """Re-derive every provable claim of an artifact from FILE alone.

    Exit code 0 if all checks hold, 1 if one fails, 2 if FILE or the spec cannot be read, or if
    checking FILE would exceed the budget: then nothing is said of it.
    """
    require_public_key(public_key, signature)
    signed = signed_of(file, public_key, signature)
    with enforced(budget), naming(file):
        report = check_file(file, spec, signed, budget)
    if as_json:
        say_json(report.to_json())
    else:
        say(*report.in_words(str(file)))
    sys.exit(0 if report.ok else 1)
