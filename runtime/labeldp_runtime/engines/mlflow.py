"""An artifact as an MLflow model, which ``labeldp export --to mlflow`` writes and MLflow loads.

The model's folder holds no key. Its file comes from the environment variable ``LABELDP_KEY``.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from labeldp_runtime.errors import EngineError, IdError, LabelError
from labeldp_runtime.randomizer import Randomizer

ARTIFACT, SETTINGS = "artifact.onnx", "settings.json"
KEY_VARIABLE = "LABELDP_KEY"
_NO_DETAILS = "MLFLOW_DISABLE_SCHEMA_DETAILS"
"""Unless it is set, MLflow quotes the whole table if a column is missing or occurs twice."""


class PrivateLabelModel:
    """A randomizer, as MLflow asks it."""

    def __init__(self, randomizer: Randomizer, id_column: str | None) -> None:
        """``id_column`` names the ids of a randomizer with a key."""
        self._randomizer, self._ids = randomizer, id_column

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Private labels of a DataFrame [n]: a Series, or a DataFrame of several columns.

        With a key, ``params`` may hold the ``version`` of the labels.

        Raises EngineError without a key in a Spark task, which may draw twice; IdError, LabelError
        or GroupError for columns that are missing or wrong.
        """
        import pandas as pd  # noqa: PLC0415  # MLflow needs it, and nothing else here

        drawer = self._randomizer
        spark = sys.modules.get("pyspark")
        if self._ids is None and spark is not None and spark.TaskContext.get() is not None:
            raise EngineError(
                "Spark may compute a label twice and draw it anew: write the model with --id-column"
            )
        names = [*drawer.label_columns, *drawer.group_columns]
        names += [] if self._ids is None else [self._ids]
        if missing := [name for name in names if name not in model_input.columns]:
            raise LabelError(f"these columns are missing: {', '.join(map(repr, missing))}")
        labels = drawer.label_columns
        given = model_input[labels[0]] if len(labels) == 1 else model_input[labels]
        groups = model_input[drawer.group_columns] if drawer.group_columns else None
        ids = None if self._ids is None else model_input[self._ids]
        version = int((params or {}).get("version", 0))
        drawn: Any = drawer(given, columns=groups, ids=ids, version=version)
        return pd.DataFrame(drawn) if isinstance(drawn, dict) else drawn


def _load_pyfunc(path: str) -> PrivateLabelModel:
    """The model in a folder, for MLflow."""
    os.environ.setdefault(_NO_DETAILS, "true")
    folder = Path(path)
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    column, context, key = settings["id_column"], settings["context"], None
    if column is not None:
        key = os.environ.get(KEY_VARIABLE)
        if not key:
            raise IdError(
                f"this model draws with a key: set {KEY_VARIABLE} to the path of a key file"
            )
    prepared = settings["prepared"]
    drawer = Randomizer.load(folder / ARTIFACT, key=key, context=context, prepared=prepared)
    return PrivateLabelModel(drawer, column)


def save_model(
    data: Path,
    folder: Path,
    *,
    randomizer: Randomizer,
    id_column: str | None,
    metadata: Any,
) -> None:
    """Write the model's folder with MLflow; ``data`` is a folder with artifact and settings.

    ``randomizer`` is that of the artifact, without a key. ``metadata`` is JSON for people who look
    for models.
    """
    import mlflow.pyfunc  # noqa: PLC0415  # for those who have MLflow
    from mlflow.models import ModelSignature  # noqa: PLC0415
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema  # noqa: PLC0415
    from mlflow.types.schema import AnyType  # noqa: PLC0415

    drawer = randomizer
    # Any type: else MLflow would refuse a column by its labels, and quote them in the error.
    columns = [*drawer.label_columns, *drawer.group_columns]
    columns += [] if id_column is None else [id_column]
    inputs = [ColSpec(AnyType(), name) for name in columns]
    names: list[Any] = drawer.private_columns
    if len(names) == 1:  # a Series
        names = [None]
    kinds = {"int64": "long", "float64": "double", "string": "string"}
    outputs = [
        ColSpec(kinds[kind], name) for kind, name in zip(drawer.output_types, names, strict=True)
    ]
    versions = None if id_column is None else ParamSchema([ParamSpec("version", "long", 0)])
    extra = "" if id_column is None else "[keyed]"
    mlflow.pyfunc.save_model(
        str(folder),
        loader_module=__name__,
        data_path=str(data),
        signature=ModelSignature(Schema(inputs), Schema(outputs), versions),
        pip_requirements=["mlflow", f"labeldp-runtime{extra}", "pandas"],
        metadata={"labeldp": metadata},
    )
