"""The tables of a finished run with its predictions, for an audit of its training labels."""

from pathlib import Path
from typing import NamedTuple

from labeldp_trainer.config.data import TableData
from labeldp_trainer.config.method import Privatized
from labeldp_trainer.errors import DataError, RunFolderError
from labeldp_trainer.outcomes.predict import open_trained, predict_file
from labeldp_trainer.outcomes.runs import find_runs


class Predicted(NamedTuple):
    """What is audited.

    Attributes:
        trained: a table of the training rows with predictions.
        untrained: one of other rows.
        sources: the files of these rows, without predictions.
        label: the column of true labels.
        features: columns.
        epsilon: ε of the run; None if it promises none.
        delta: δ; 0 if it promises none.
    """

    trained: Path
    untrained: Path
    sources: tuple[Path, Path]
    label: str
    features: tuple[str, ...]
    epsilon: float | None
    delta: float


def predicted(
    run: Path, trained: Path | None, untrained: Path | None, label: str | None, folder: Path
) -> Predicted:
    """Write predictions for both tables into ``folder``. Raises InputError."""
    (facts,) = find_runs([run])
    if facts.status != "done":
        raise RunFolderError(str(facts.reason))
    model = open_trained(run)
    loaded, data = model.loaded, model.loaded.config.data
    if not isinstance(data, TableData):
        raise DataError(
            f"{run}: was not trained on a table; write its predictions beside the labels of two "
            "tables, and audit these with --untrained"
        )
    if label is None and isinstance(loaded.config.method, Privatized):
        raise DataError(
            f"{run}: was trained on private labels; give --trained with the true ones, and --label"
        )
    if untrained is None and data.test is None:
        raise DataError(
            f"{run}: has no test set; give --untrained, rows that it was not trained on"
        )
    own, other = trained or loaded.path(data.train), untrained or loaded.path(str(data.test))
    with_predictions = folder / "trained.parquet", folder / "untrained.parquet"
    classes = model.loss.task.classes is not None
    for source, output in zip((own, other), with_predictions, strict=True):
        predict_file(model, source, output, probabilities=classes)
    return Predicted(
        *with_predictions,
        (own, other),
        label or data.label,
        data.columns,
        facts.epsilon,
        facts.delta or 0.0,
    )
