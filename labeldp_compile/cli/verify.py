"""``labeldp verify``: what the file proves, in plain words or as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from labeldp_verify import Budget, Report
from labeldp_verify.budget import enforced, naming
from labeldp_verify.command import limits_of, verify_files

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.output import complain, say, say_json
from labeldp_compile.spec_match import check_file


@click.command(
    "verify",
    epilog="\b\nExample:\n"
    "  labeldp verify build/doctor-visits.onnx --spec specs/doctor-visits.yaml",
)
@click.argument(
    "files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE..."
)
@click.option(
    "--spec", type=click.Path(path_type=Path), help="Also check that FILE was made from this spec."
)
@signature_options
@click.option("--max-epsilon", metavar="E", help="Fail if a label may spend more (proved).")
@click.option("--name", help="Fail if FILE is of another name (declared).")
@click.option("--min-outputs", type=int, metavar="M", help="Fail if outputs are fewer (proved).")
@click.option("--max-bias", metavar="B", help="Fail if a label is off by more on average (proved).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@budget_option
def verify_command(
    files: tuple[Path, ...],
    spec: Path | None,
    public_key: Path | None,
    signature: Path | None,
    max_epsilon: str | None,
    name: str | None,
    min_outputs: int | None,
    max_bias: str | None,
    as_json: bool,
    budget: Budget,
) -> None:
    """Re-derive every provable claim of an artifact from FILE alone.

    Several files are verified one by one.
    Exit code 0 if all checks hold, 1 if one fails, 2 if FILE or the spec cannot be read, or if
    checking FILE would exceed the budget: then nothing is said of it.
    """
    require_public_key(public_key, signature)
    if len(files) > 1 and (spec is not None or signature is not None):
        option = "--signature" if spec is None else "--spec"
        raise click.UsageError(f"{option} is for one FILE")
    limits = limits_of(max_epsilon, name, min_outputs, max_bias)

    def verify(file: Path) -> Report:
        signed = signed_of(file, public_key, signature)
        with naming(file), enforced(budget):
            return check_file(file, spec, signed, budget, limits)

    sys.exit(
        verify_files(
            files,
            verify,
            as_json=as_json,
            say=lambda lines: say(*lines),
            say_json=say_json,
            complain=complain,
        )
    )
