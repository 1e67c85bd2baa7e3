"""Data sets in files, as arrays."""

from collections.abc import Sequence

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import NpzData, TableData
from labeldp_trainer.data.arrays import load_idx, load_npz
from labeldp_trainer.data.dataset import Dataset, Features, FeatureShape, Part, array_digest
from labeldp_trainer.data.labels import Task
from labeldp_trainer.data.table import load_table

__all__ = ["Dataset", "FeatureShape", "Features", "Part", "Task", "array_digest", "load_data"]


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
