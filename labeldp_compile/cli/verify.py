"""``labeldp verify``: what the file proves, in plain words or as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from labeldp_verify import Budget, Report, SpecCheck, check_file, read_artifact
from labeldp_verify.budget import enforced, naming
from labeldp_verify.console.attestation import attestation
from labeldp_verify.console.command import limits_of, verify_files
from labeldp_verify.printable import json_text

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.number_options import Whole
from labeldp_compile.cli.output import complain, say, say_json
from labeldp_compile.clock import now
from labeldp_compile.whole_file import require_another_file, require_output, write_text


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
@click.option(
    "--max-total-epsilon",
    metavar="E",
    help="Fail if a label that the prior was counted from, too, may spend more in total "
    "(declared).",
)
@click.option("--name", help="Fail if FILE is of another name (declared).")
@click.option(
    "--min-outputs", type=Whole(0), metavar="M", help="Fail if outputs are fewer (proved)."
)
@click.option("--max-bias", metavar="B", help="Fail if a label is off by more on average (proved).")
@click.option(
    "--attest",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="If all checks hold, write what was verified: an in-toto Statement with the predicate "
    "Simple Verification Result.",
)
@click.option(
    "--attest-key",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign OUT with this key (PEM; Ed25519 or P-256): a DSSE envelope.",
)
@click.option("--overwrite", is_flag=True, help="Replace an OUT that exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@budget_option
def verify_command(
    files: tuple[Path, ...],
    spec: Path | None,
    public_key: Path | None,
    signature: Path | None,
    max_epsilon: str | None,
    max_total_epsilon: str | None,
    name: str | None,
    min_outputs: int | None,
    max_bias: str | None,
    attest: Path | None,
    attest_key: Path | None,
    overwrite: bool,
    as_json: bool,
    budget: Budget,
) -> None:
    """Re-derive every provable claim of an artifact from FILE alone.

    Several files are verified one by one.
    Exit code 0 if all checks hold, 1 if one fails, 2 if FILE or the spec cannot be read, or if
    checking FILE would exceed the budget: then nothing is said of it.
    """
    require_public_key(public_key, signature)
    of_one = {"--spec": spec, "--signature": signature, "--attest": attest}
    if len(files) > 1 and any(of_one.values()):
        option = next(name for name, value in of_one.items() if value)
        raise click.UsageError(f"{option} is for one FILE")
    if attest is None and (attest_key is not None or overwrite):
        raise click.UsageError("--attest-key and --overwrite need --attest")
    signer = None
    if attest_key is not None:
        from labeldp_compile.signing import read_private_key  # noqa: PLC0415  # cryptography

        signer = read_private_key(attest_key)
    if attest is not None:
        inputs = [*files, spec, signature, public_key, attest_key]
        require_another_file(attest, [path for path in inputs if path is not None])
        require_output(attest, overwrite=overwrite)
    time = "" if attest is None else now()
    limits = limits_of(max_epsilon, name, min_outputs, max_bias, max_total_epsilon)

    def verify(file: Path) -> Report:
        signed = signed_of(file, public_key, signature)
        with naming(file), enforced(budget):
            agreement = None if spec is None else _agreement_with(spec)
            report = check_file(file, agreement, signed, budget, limits)
        if attest is not None and report.ok:
            stated = attestation(report, file.name, time, limits=limits, signed=signed)
            document = stated
            if signer is not None:
                from labeldp_compile.signing import enveloped  # noqa: PLC0415

                document = enveloped(stated, signer)
            write_text(attest, json_text(document) + "\n")
        return report

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


def _agreement_with(spec: Path) -> SpecCheck:
    from labeldp_compile.spec_match import spec_check  # noqa: PLC0415  # YAML

    return spec_check(read_artifact(spec))
