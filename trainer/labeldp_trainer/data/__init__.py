"""Data sets in files, as arrays."""

from collections.abc import Sequence
from pathlib import Path

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import NpzData, TableData
from labeldp_trainer.config.representation import FromFile
from labeldp_trainer.data.arrays import load_idx, load_npz, load_unlabelled_arrays, require_alike
from labeldp_trainer.data.dataset import DataPart, Dataset, Features, FeatureShape, array_digest
from labeldp_trainer.data.encoder import TableEncoder
from labeldp_trainer.data.labels import Task
from labeldp_trainer.data.table import load_table, load_unlabelled_table
from labeldp_trainer.data.true_labels import require_true_labels

__all__ = [
    "DataPart",
    "Dataset",
    "FeatureShape",
    "Features",
    "Task",
    "array_digest",
    "load_data",
    "load_features",
    "load_unlabelled",
]


def load_data(
    loaded: LoadedConfig, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The data of a config with the label columns that each part needs.

    Raises DataError, also for labels that are private already where true ones are meant.
    """
    dataset = _read(loaded, train_columns, test_columns)
    require_true_labels(loaded, dataset, train_columns, test_columns)
    return dataset


def _read(
    loaded: LoadedConfig, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        return load_table(data, directory, train_columns, test_columns)
    if isinstance(data, NpzData):
        return load_npz(data, directory, train_columns, test_columns)
    return load_idx(data, directory, train_columns, test_columns)


def load_features(loaded: LoadedConfig, path: Path) -> DataPart:
    """What a model is to predict for, of a file that is no table; no label is read.

    Raises DataError.
    """
    data, config = loaded.config.data, loaded.config.representation
    if isinstance(config, FromFile):
        stated = {"kind": "npz", "train": str(path), "features": config.array}
        data = NpzData.model_validate(stated)
    assert not isinstance(data, TableData)
    return load_unlabelled_arrays(data, Path(), str(path))


def load_unlabelled(loaded: LoadedConfig, name: str, dataset: Dataset) -> DataPart:
    """Features alone of one more file of the kind that the data set is of. Raises DataError."""
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        assert isinstance(dataset.encoder, TableEncoder)
        return load_unlabelled_table(data, directory, name, dataset.encoder)
    part = load_unlabelled_arrays(data, directory, name)
    require_alike(part, dataset.train.features.shape[1:])
    return part
