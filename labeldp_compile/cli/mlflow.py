"""``labeldp mlflow``: an artifact as an MLflow model."""

import importlib.util
from pathlib import Path

import click
from labeldp_verify.console.colour import Marked

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import PATH, prepared_option
from labeldp_compile.cli.output import say, tell
from labeldp_compile.errors import InputError


@command("mlflow", "labeldp mlflow build/visits.onnx -o model --id-column visit_id")
@click.argument("artifact", type=PATH)
@click.option("-o", "--output", "folder", type=PATH, required=True, help="Folder to make.")
@click.option(
    "--id-column",
    metavar="NAME",
    help="Draw with a key: the column that names each label. The model then gives the same private "
    "label each time, and works in Spark.",
)
@click.option(
    "--context", help="With --id-column: a name for this use of the label (default: its column)."
)
@prepared_option
def mlflow_command(
    artifact: Path, folder: Path, id_column: str | None, context: str | None, prepared: bool
) -> None:
    """Write ARTIFACT as an MLflow model: from a frame of true labels to private ones.

    ARTIFACT is verified first. The folder holds it with its certificate and the verdict, and no
    key: with --id-column, set LABELDP_KEY to the path of a key file where the model runs. Needs
    mlflow.

    Exit code 1: ARTIFACT does not verify. Exit code 2: the input is wrong.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise InputError("labeldp mlflow needs mlflow: pip install mlflow")
    if context is not None and id_column is None:
        raise InputError("--context: needs --id-column")
    from labeldp_compile.tools.mlflow_folder import write_mlflow  # noqa: PLC0415

    with verified(artifact):
        write_mlflow(artifact, folder, id_column, context, prepared=prepared)
    tell(Marked(f"verified, and written as an MLflow model: {folder}", "ok"))
    say(str(folder))
