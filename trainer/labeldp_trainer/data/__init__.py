"""Data sets in files, as arrays."""

from collections.abc import Sequence

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import NpzData, TableData
from labeldp_trainer.data.arrays import load_idx, load_npz, load_unlabelled_arrays, require_alike
from labeldp_trainer.data.dataset import Dataset, Features, FeatureShape, Part, array_digest
from labeldp_trainer.data.labels import Task
from labeldp_trainer.data.table import load_table, load_unlabelled_table

__all__ = [
    "Dataset",
    "FeatureShape",
    "Features",
    "Part",
    "Task",
    "array_digest",
    "load_data",
    "load_unlabelled",
]


def load_data(
    loaded: LoadedConfig, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The data of a config with the label columns that each part needs. Raises DataError."""
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        return load_table(data, directory, train_columns, test_columns)
    if isinstance(data, NpzData):
        return load_npz(data, directory, train_columns, test_columns)
    return load_idx(data, directory)


def load_unlabelled(loaded: LoadedConfig, name: str, train: Part) -> Part:
    """Features alone of one more file of the same kind as that of ``train``. Raises DataError."""
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        return load_unlabelled_table(data, directory, name)
    part = load_unlabelled_arrays(data, directory, name)
    require_alike(part, train.features.shape[1:])
    return part
