"""``labeldp verify``: a summary of what a file proves, every check, or JSON."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from labeldp_verify import Budget, Report, check_file, read_artifact
from labeldp_verify.budget import enforced, naming
from labeldp_verify.command import VERBOSE, verify_files
from labeldp_verify.console.attestation import attestation
from labeldp_verify.limits import LIMITS, Limits, option_of
from labeldp_verify.printable import json_text
from labeldp_verify.strict import read_whole

from labeldp_compile.cli.command import command, complain, say, say_json
from labeldp_compile.cli.options import (
    PATH,
    SignatureFiles,
    budget_option,
    json_option,
    overwrite_option,
    signature_options,
    signing_key,
)
from labeldp_compile.errors import InputError
from labeldp_compile.whole_file import require_output, write_text


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each limit of the verifier."""
    for name, limit in reversed(LIMITS.items()):
        option = click.option(
            option_of(name),
            metavar=limit.metavar,
            help=f"{limit.help[0].upper()}{limit.help[1:]}.",
        )
        command = option(command)
    return command


@command("verify", "labeldp verify build/doctor-visits.onnx --spec specs/doctor-visits.yaml")
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE...")
@click.option("--spec", type=PATH, help="Also check that FILE was made from this spec.")
@signature_options
@limit_options
@click.option(
    "--attest",
    type=PATH,
    metavar="OUT",
    help="If all checks hold, write the result to OUT: an in-toto Statement with the predicate "
    "Simple Verification Result.",
)
@click.option(
    "--attest-key",
    type=PATH,
    metavar="KEY",
    help="Sign OUT with this key (PEM; Ed25519 or P-256), as a DSSE envelope.",
)
@overwrite_option
@click.option("--verbose", "-v", is_flag=True, help=f"{VERBOSE[0].upper()}{VERBOSE[1:]}.")
@json_option
@budget_option
def verify_command(
    files: tuple[Path, ...],
    spec: Path | None,
    signing: SignatureFiles,
    attest: Path | None,
    attest_key: Path | None,
    overwrite: bool,
    verbose: bool,
    as_json: bool,
    budget: Budget,
    **limited: str | None,
) -> None:
    """Check every provable claim of an artifact from FILE alone.

    Prints a summary, failed checks, warnings and a verdict. Several files are verified one by one.
    Exit code 0 if all checks hold, 1 if one fails, 2 if FILE or the spec cannot be read, or if
    FILE was not checked because that would exceed the budget.
    """
    of_one = {"--spec": spec, "--signature": signing.signature, "--attest": attest}
    if len(files) > 1 and any(of_one.values()):
        option = next(name for name, value in of_one.items() if value)
        raise click.UsageError(f"{option} is for one FILE only")
    if attest is None and (attest_key is not None or overwrite):
        raise click.UsageError("--attest-key and --overwrite need --attest")
    signer = signing_key(attest_key)
    if attest is not None:
        inputs = [*files, spec, signing.signature, signing.public_key, attest_key]
        require_output(attest, *inputs, overwrite=overwrite)
    time = "" if attest is None else _now()
    limits = Limits.read(limited)

    def verify(file: Path) -> Report:
        signed, agreement = signing.signed(file), None
        with naming(file), enforced(budget):
            if spec is not None:
                from labeldp_compile.spec.agreement import spec_check  # noqa: PLC0415  # YAML

                agreement = spec_check(read_artifact(spec), spec.parent)
            report = check_file(file, agreement, signed, budget, limits)
        if attest is not None and report.ok:
            document = attestation(report, file.name, time, limits=limits, signed=signed)
            if signer is not None:
                from labeldp_compile.signing import signed_envelope  # noqa: PLC0415

                document = signed_envelope(document, signer)
            write_text(attest, json_text(document) + "\n")
        return report

    code = verify_files(
        files,
        verify,
        as_json=as_json,
        verbose=verbose,
        say=lambda lines: say(*lines),
        say_json=say_json,
        complain=complain,
    )
    sys.exit(code)


def _now() -> str:
    """The time in OUT: that of ``SOURCE_DATE_EPOCH`` if it is set, else now."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        time = datetime.now(UTC) if text is None else datetime.fromtimestamp(read_whole(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError("SOURCE_DATE_EPOCH: expected seconds since 1970, as a number") from None
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
