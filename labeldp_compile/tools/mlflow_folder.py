"""The folder of an MLflow model of an artifact: written whole, or not at all."""

import json
import tempfile
from pathlib import Path

from labeldp_runtime import Randomizer
from labeldp_runtime.mlflow_model import ARTIFACT, SETTINGS, save_model
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.graph import canonical_json

from labeldp_compile.column_names import key_of
from labeldp_compile.errors import InputError
from labeldp_compile.prepared_rows import require_prepared_rows
from labeldp_compile.whole_file import require_folder


def write_mlflow(
    artifact: Path,
    folder: Path,
    id_column: str | None = None,
    context: str | None = None,
    *,
    prepared: bool = False,
) -> None:
    """Write an MLflow model that randomizes labels with an artifact, which is verified first.

    Without ``id_column`` it draws anew in each call. With it, it takes ids from this column and
    draws with a key, for ``context`` or the label's columns. ``prepared`` says that rows meet what
    the artifact demands of them together.

    Raises VerificationError if the artifact does not verify, and InputError.
    """
    require_folder(folder)
    data = read_artifact(artifact)
    report = check_bytes(data, budget=OWN_FILES)
    verified = report.verified()
    certificate = verified.certificate
    require_prepared_rows(certificate, artifact, prepared=prepared)
    drawer = Randomizer(data, str(artifact), prepared=True)
    if id_column in (*drawer.label_columns, *drawer.group_columns):
        raise InputError(f"--id-column {id_column}: is a column of the label or of its groups")
    own = None if id_column is None else context or key_of(certificate.label_columns)
    settings = {"id_column": id_column, "context": own, "prepared": prepared}
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
            "sha256": verified.sha256,
            "epsilon_label_bound": certificate.privacy.epsilon_label_bound,
            "keyed": id_column is not None,
        }
        made = Path(directory) / "model"
        save_model(held, made, randomizer=drawer, id_column=id_column, metadata=facts)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
