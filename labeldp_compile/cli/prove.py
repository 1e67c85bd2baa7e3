"""``labeldp prove``: an artifact's integers as a proof that Coq checks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from labeldp_verify import Budget, check_bytes, read_artifact
from labeldp_verify.budget import enforced, naming
from labeldp_verify.table_claims import decimals

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.output import complain, say, tell
from labeldp_compile.errors import InputError
from labeldp_compile.tools.prove import (
    MAX_INTEGERS,
    coq_version,
    lookup_of,
    proof_of,
    run_coq,
    size_of,
)
from labeldp_compile.whole_file import replaced_when_whole, require_output

_OUTSIDE = (
    "Outside of the proof: that the graph computes these integers (labeldp verify rebuilt the file "
    "from them, byte for byte, and ran it around its thresholds), and that words are uniform, "
    "secret and used once."
)


@click.command(
    "prove",
    epilog="\b\nExample:\n  labeldp prove build/doctor-visits.onnx -o doctor_visits.v",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The Coq file to write (.v): letters, digits and _, as Coq demands of names.",
)
@signature_options
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@budget_option
def prove_command(
    file: Path,
    output: Path,
    public_key: Path | None,
    signature: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Write the integers of the artifact FILE, and a proof that they are private, for Coq.

    FILE is verified first. The Coq file needs nothing but Coq 8.16 or newer; if coqc is on the
    path, it is run. Exit code 0 if the file was written and Coq, where it is there, accepts it; 1
    if FILE does not verify or Coq refuses the proof (nothing is written then); 2 if FILE cannot be
    read, or is too large for Coq.
    """
    _require_name(output)
    require_public_key(public_key, signature)
    require_output(output, overwrite=overwrite)
    signed = signed_of(file, public_key, signature)
    data = read_artifact(file)
    with naming(file), enforced(budget):
        report = check_bytes(data, None, signed, budget)
    decoded = report.decoded or report.grouped
    if decoded is None:
        failed = next(check for check in report.checks if not check.ok)
        complain(f"{file}: DOES NOT VERIFY. Do not use this file. {failed.name}: {failed.detail}")
        sys.exit(1)
    if size_of(decoded) > MAX_INTEGERS:
        raise InputError(
            f"{file}: has {size_of(decoded):,} integers, and Coq would read for too long: it takes "
            f"files of at most {MAX_INTEGERS:,}"
        )
    proof = proof_of(decoded, grid=lookup_of(data, decoded))
    version = coq_version()
    if version is not None:
        count = size_of(decoded)
        tell(f"Coq {version} checks {count:,} integer{'s' * (count != 1)}: this takes some seconds")
        answer = run_coq(proof.text, len(proof.theorems))
        if not answer.accepted:
            complain(f"{file}: Coq {version} does not accept the proof: {answer.why}")
            sys.exit(1)
    with replaced_when_whole(output) as part:
        part.write(proof.text.encode())
    bound = decimals(proof.epsilon)
    if version is None:
        say(f"{output}: written; nothing was checked, for there is no coqc on the path")
        tell(f"It states ε ≤ {bound}. Install Coq 8.16 or newer and run: coqc {output.name}")
    else:
        say(f"machine-checked: ε ≤ {bound} (Coq {version}, resting on no assumption), {output}")
    tell(_OUTSIDE)


def _require_name(output: Path) -> None:
    """Coq names a file's module after it."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*\.v", output.name, re.ASCII):
        safe = re.sub(r"\W", "_", output.stem, flags=re.ASCII).lstrip("_0123456789") or "artifact"
        raise InputError(
            f"{output}: Coq needs a name of letters, digits and _ that ends in .v, such as {safe}.v"
        )
