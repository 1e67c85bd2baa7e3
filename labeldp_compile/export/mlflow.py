"""An artifact as an MLflow model, in a folder that is written whole, or not at all."""

import json
import tempfile
from pathlib import Path

import click
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import Marked

from labeldp_compile.cli.command import command, say, tell, verified
from labeldp_compile.cli.options import PATH, prepared_option, require_prepared_rows
from labeldp_compile.errors import InputError, require_installed


@command("mlflow", "labeldp export --to mlflow build/visits.onnx -o model --id-column visit_id")
@click.argument("file", type=PATH)
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
def target(
    file: Path, folder: Path, id_column: str | None, context: str | None, prepared: bool
) -> None:
    """Write the artifact FILE as an MLflow model: from a frame of true labels to private ones.

    FILE is verified first. The folder holds it with its certificate and the verdict, and no key:
    with --id-column, set LABELDP_KEY to the path of a key file where the model runs. Needs mlflow.

    Exit code 1: FILE does not verify. Exit code 2: the input is wrong.
    """
    require_installed("labeldp export --to mlflow", "mlflow", install="pip install mlflow")
    if context is not None and id_column is None:
        raise InputError("--context: needs --id-column")
    from labeldp_runtime import Randomizer  # noqa: PLC0415  # numpy
    from labeldp_runtime.engines.mlflow import ARTIFACT, SETTINGS, save_model  # noqa: PLC0415

    from labeldp_compile.tabular.formats import key_of  # noqa: PLC0415  # numpy
    from labeldp_compile.whole_file import require_folder  # noqa: PLC0415  # numpy

    require_folder(folder)
    data = read_artifact(file)
    report = check_bytes(data, budget=OWN_FILES)
    with verified(file):
        decoded = report.verified()
    certificate = decoded.certificate
    require_prepared_rows(certificate, file, prepared=prepared)
    drawer = Randomizer(data, str(file), prepared=True)
    if id_column in (*drawer.label_columns, *drawer.group_columns):
        raise InputError(f"--id-column {id_column}: is a column of the label or of its groups")
    key_context = None if id_column is None else context or key_of(certificate.label_columns)
    settings = {"id_column": id_column, "context": key_context, "prepared": prepared}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as directory:
        held = Path(directory) / "data"
        held.mkdir()
        (held / ARTIFACT).write_bytes(data)
        (held / SETTINGS).write_text(json.dumps(settings) + "\n", encoding="utf-8")
        stated = canonical_json(certificate.to_json()) + "\n"
        (held / "certificate.json").write_text(stated, encoding="utf-8")
        verdict = json.dumps(report.to_json(), indent=2) + "\n"
        (held / "verdict.json").write_text(verdict, encoding="utf-8")
        example: dict[str, list[str | None]] = {
            name: [None] for name in (*drawer.label_columns, *drawer.group_columns)
        }
        if id_column is not None:
            example[id_column] = ["an id"]
        (held / "example.json").write_text(json.dumps(example) + "\n", encoding="utf-8")
        facts = {
            "name": certificate.name,
            "sha256": decoded.sha256,
            "epsilon_label_bound": certificate.privacy.epsilon_label_bound,
            "keyed": id_column is not None,
        }
        model = Path(directory) / "model"
        save_model(held, model, randomizer=drawer, id_column=id_column, metadata=facts)
        if folder.exists():
            folder.rmdir()
        model.rename(folder)
    tell(Marked(f"verified, and written as an MLflow model: {folder}", "ok"))
    say(str(folder))
