"""Columns that must hold true labels: none that its own file notes as private already.

A model that was trained on private labels must not be called one without privacy, and labels that
were randomized are not to be protected once more as if they were true. Metrics on a test set are
those of its true labels.
"""

from __future__ import annotations

from collections.abc import Collection

from labeldp_compile.tabular.provenance import require_true
from labeldp_trainer.config import LoadedConfig, Privatized
from labeldp_trainer.data.dataset import DataPart, Dataset

_RANDOMIZED_HERE = "randomize the table with the true ones"
_TRAIN = (
    "name the table with the true ones, or take method privatized, with private_column and the "
    "artifact or its certificate"
)
_TEST = "metrics are those of true labels: name a table that has them, or leave data.test out"


def require_true_labels(
    loaded: LoadedConfig, dataset: Dataset, train: Collection[str], test: Collection[str]
) -> None:
    """Raise DataError if a column is noted as private where a config means true labels.

    ``train`` and ``test`` are the columns that are read of each part; others are not looked at.
    """
    method, label = loaded.config.method, loaded.config.data.label
    hint, column = _TRAIN, label
    if isinstance(method, Privatized):
        hint, column = _RANDOMIZED_HERE, method.column or label
        train = train if method.private_column is None else ()
    if column in train:
        _require(dataset.train, column, hint)
    if label in test and dataset.test is not None:
        _require(dataset.test, label, _TEST)


def _require(part: DataPart, column: str, hint: str) -> None:
    for path, metadata in part.files:
        require_true(path, metadata, column, hint)
