"""``labeldp port``: an artifact as a portable file."""

from pathlib import Path

import click
from labeldp_verify import Budget
from labeldp_verify.console.colour import Marked

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    overwrite_option,
    sign_option,
    signing_key,
    written_option,
)
from labeldp_compile.cli.output import say, tell
from labeldp_compile.tools.port import portable


@command("port", "labeldp port build/visits.onnx -o portable/")
@click.argument("file", type=PATH)
@written_option
@overwrite_option
@sign_option
@budget_option
def port_command(
    file: Path, directory: Path, overwrite: bool, key: Path | None, budget: Budget
) -> None:
    """Write the artifact FILE as a portable file, which more hosts can run.

    A portable file runs on onnxruntime 1.12 and newer, and takes random words as signed integers.
    It has the same integers, the same proofs and, for the same words, the same private labels.
    Nothing is spent. FILE is verified first, and so is what is written.

    Exit code 1: FILE does not verify. Exit code 2: the input is wrong. Prints the path on stdout.
    """
    signer = signing_key(key)
    with verified(file):
        found = portable(file, budget)
    path = found.write(directory, overwrite=overwrite, key=signer)
    tell(Marked(f"portable, and verified: {path}", "ok"))
    say(str(path))
