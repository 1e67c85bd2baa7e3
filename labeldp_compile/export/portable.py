"""An artifact as a portable file: the same randomizer, which more hosts can run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify import DEFAULT_BUDGET, OWN_FILES, Budget, check_bytes
from labeldp_verify.claims import as_portable
from labeldp_verify.graph import write_model
from labeldp_verify.printable import Marked

from labeldp_compile.cli.command import command, say, tell, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    overwrite_option,
    sign_option,
    signing_key,
    written_option,
)

if TYPE_CHECKING:
    from labeldp_verify.artifact import Artifact

    from labeldp_compile.build.assembly import Compiled


@command("portable", "labeldp export --to portable build/visits.onnx -o portable/")
@click.argument("file", type=PATH)
@written_option
@overwrite_option
@sign_option
@budget_option
def target(file: Path, directory: Path, overwrite: bool, key: Path | None, budget: Budget) -> None:
    """Write the artifact FILE as a portable file, which more hosts can run.

    A portable file runs on onnxruntime 1.12 and newer, and takes random words as signed integers.
    It has the same integers, the same proofs and, for the same words, the same private labels.
    Nothing is spent. FILE is verified first, and so is what is written.

    Exit code 1: FILE does not verify. Exit code 2: the input is wrong. Prints the path on stdout.
    """
    signer = signing_key(key)
    with verified(file):
        compiled = portable(file, budget)
    path = compiled.write(directory, overwrite=overwrite, key=signer)
    tell(Marked(f"portable, and verified: {path}", "ok"))
    say(str(path))


def portable(artifact: Path, budget: Budget = DEFAULT_BUDGET) -> Compiled:
    """The portable file with the integers and the claims of an artifact, which is verified first.

    It gives the same private label for the same label and words. Nothing is spent.

    Raises InputError if the artifact cannot be read, and VerificationError if it does not verify.
    """
    from labeldp_verify.opening import open_artifact  # noqa: PLC0415  # numpy

    return as_portable_file(open_artifact(artifact, budget))


def as_portable_file(artifact: Artifact) -> Compiled:
    """The portable file of a verified artifact."""
    from labeldp_compile.build.assembly import Compiled  # noqa: PLC0415  # pydantic

    certificate = as_portable(artifact.certificate, artifact)
    model = write_model(artifact.label, artifact.lookup, certificate.to_json())
    return Compiled(model, check_bytes(model, budget=OWN_FILES).verified())
