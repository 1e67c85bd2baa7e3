"""``labeldp randomize``: privatize one column of a table."""

from __future__ import annotations

from pathlib import Path

import click
from labeldp_runtime import Randomizer, RuntimeArtifactError

from labeldp_compile.cli.progress import row_progress
from labeldp_compile.errors import InputError
from labeldp_compile.tabular import open_table, rewrite_table
from labeldp_compile.verify import VerificationError, check_bytes, read_artifact
from labeldp_compile.verify.decode import read_domain


@click.command("randomize")
@click.argument("artifact", type=click.Path(path_type=Path))
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Parquet or CSV file to write.",
)
@click.option("--column", help="The label column (default: the one in the spec).")
@click.option(
    "--add",
    "add_as",
    metavar="NAME",
    help="Add the private labels as column NAME and KEEP the true labels beside them.",
)
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@click.option("--quiet", is_flag=True, help="Say nothing.")
def randomize_command(
    artifact: Path,
    table: Path,
    output: Path,
    column: str | None,
    add_as: str | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Randomize the labels of TABLE with ARTIFACT, which is verified first.

    All other columns are kept. The output appears under its name only when it is whole. Each run
    draws fresh randomness and spends the label's ε again: keep the output, do not repeat.
    """
    _refuse_loss(table, output, overwrite=overwrite)
    try:
        data = read_artifact(artifact)
        certificate = check_bytes(data).require().certificate
        randomizer = Randomizer(data, str(artifact))
    except VerificationError as error:
        click.echo(f"labeldp: {artifact}: does not verify: {error}", err=True)
        raise SystemExit(1) from error
    except RuntimeArtifactError as error:
        click.echo(f"labeldp: {error}", err=True)
        raise SystemExit(1) from error
    assert certificate is not None
    column = column or str(certificate["label"]["column"])
    reader = open_table(table, column, read_domain(certificate), all_columns=True)
    with row_progress("randomizing", reader.rows, quiet=quiet) as progress:
        rows = rewrite_table(reader, output, randomizer, add_as=add_as, progress=progress)
    if not quiet:
        epsilon = certificate["privacy"]["epsilon_label"]
        click.echo(f"{output}: {rows:,} rows, ε = {epsilon:g} spent on each label", err=True)
        if add_as is not None:
            click.echo(f"{output}: still holds the true labels in {column!r}", err=True)


def _refuse_loss(table: Path, output: Path, *, overwrite: bool) -> None:
    if output.exists():
        if table.exists() and output.samefile(table):
            raise InputError(f"{output}: is the input; write to another file")
        if not overwrite:
            raise InputError(f"{output}: exists already; say --overwrite to replace it")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: there is no directory {output.parent}")
