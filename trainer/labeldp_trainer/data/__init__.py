"""Data sets in files, as arrays."""

from collections.abc import Sequence
from typing import Any

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import IdxFiles, TableData
from labeldp_trainer.data.arrays import read_arrays
from labeldp_trainer.data.dataset import DataPart, Dataset, Features, FeatureShape, array_digest
from labeldp_trainer.data.encoder import ArrayEncoder, TableEncoder
from labeldp_trainer.data.labels import Task
from labeldp_trainer.data.table import TableColumns, read_table
from labeldp_trainer.data.true_labels import require_true_labels

__all__ = [
    "DataPart",
    "Dataset",
    "FeatureShape",
    "Features",
    "Task",
    "array_digest",
    "load_data",
    "load_unlabelled",
]


def load_data(
    loaded: LoadedConfig, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The data of a config with the label columns that each part needs.

    Raises DataError, also for labels that are private already where true ones are meant.
    """
    data = loaded.config.data
    found = _read(loaded, data.train, train_columns, data.rows)
    if isinstance(found, TableColumns):
        assert isinstance(data, TableData)
        encoder: Any = TableEncoder.of(found, data)
    else:
        encoder = ArrayEncoder.of(found)
    test = None if data.test is None else encoder.part(_read(loaded, data.test, test_columns))
    dataset = Dataset(encoder.shape, encoder.part(found), test, encoder=encoder)
    require_true_labels(loaded, dataset, train_columns, test_columns)
    return dataset


def load_unlabelled(loaded: LoadedConfig, name: str, dataset: Dataset) -> DataPart:
    """Features alone of one more file of the kind that the data set is of. Raises DataError."""
    encoder: Any = dataset.encoder
    part: DataPart = encoder.part(_read(loaded, name, ()))
    return part


def _read(
    loaded: LoadedConfig, named: str | IdxFiles, columns: Sequence[str], rows: int | None = None
) -> TableColumns | DataPart:
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        return read_table(directory / str(named), data, columns, rows)
    return read_arrays(data, directory, named, columns, rows)
