"""Reads data files as arrays.

A column that should hold true labels is refused if its file says that it is already private. A
model trained on private labels must not be reported as one without privacy, and private labels must
not be randomized again as if they were true. Test metrics use true labels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp_compile.toolkit import files_of, require_true
from labeldp_trainer.config import LoadedConfig, NoMethod, Privatized
from labeldp_trainer.config.data import IdxFiles, PairsData, TableData
from labeldp_trainer.data.arrays import read_arrays
from labeldp_trainer.data.encoders import ArrayEncoder, Dataset, TableEncoder
from labeldp_trainer.data.features import AllRows, DataPart, Features, FeatureShape, array_digest
from labeldp_trainer.data.labels import Task
from labeldp_trainer.data.pairs import read_pairs
from labeldp_trainer.data.table import TableColumns, TableRows
from labeldp_trainer.data.users import owner_digests
from labeldp_trainer.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


_RANDOMIZED_HERE = "randomize the table that has the true ones"
_TRAIN = (
    "use the table that has the true ones, or method privatized with private_column and its "
    "artifact"
)
_TEST = "test metrics need true labels; use a table that has them, or remove data.test"


def load_data(
    loaded: LoadedConfig,
    train_columns: Sequence[str],
    test_columns: Sequence[str],
    spark: SparkSession | None = None,
) -> Dataset:
    """The data of a config with the label columns that each part needs.

    With ``spark``, or of many rows that are asked for sums alone, the training part is a sample,
    and its labels stay where they are. Raises DataError, also if labels that should be true are
    already private, or if those of the test part are the training labels.
    """
    data = loaded.config.data
    _require_other_labels(loaded, test_columns)
    table, found, labels = _training_rows(loaded, train_columns, spark)
    if isinstance(found, TableRows | TableColumns):
        assert isinstance(data, TableData)
        missing = loaded.config.takes_missing_numbers
        encoder: Any = TableEncoder.of(found, data, takes_missing_numbers=missing)
    else:
        encoder = ArrayEncoder.of(found)
    test = None if data.test is None else encoder.part(_read(loaded, data.test, test_columns))
    train = _owned(loaded, replace(encoder.part(found), whole=table), found)
    if labels is not None:
        train = replace(train, columns=labels.others, source=labels.source)
    dataset = Dataset(encoder.shape, train, test, encoder=encoder)
    _require_true_labels(loaded, dataset, train_columns, test_columns)
    return dataset


def _training_rows(
    loaded: LoadedConfig, columns: Sequence[str], spark: SparkSession | None
) -> tuple[AllRows | None, Any, TableColumns | None]:
    """What there is to encode, all rows if it is a sample of them, and what has their labels, if
    a method takes them row by row."""
    data = loaded.config.data
    if spark is not None:
        from labeldp_trainer.spark import SparkTable  # noqa: PLC0415

        there = SparkTable.open(spark, loaded)
        return there, there.sample, None
    found = _read(loaded, data.train, columns, data.rows)
    if isinstance(found, TableRows):
        from labeldp_trainer.sampled import StreamedTable, is_summed, step_of  # noqa: PLC0415

        if is_summed(loaded) and step_of(found.rows) > 1:
            table, labels = StreamedTable.of(found, loaded), None
            step = step_of(table.rows, table.users)
            if isinstance(loaded.config.method, NoMethod | Privatized):
                labels = found.labels()
                table = replace(table, sampled=np.flatnonzero(labels.places % step == 0))
            return table, table.table.sample(step), labels
    return None, found, None


def _owned(loaded: LoadedConfig, train: DataPart, found: TableRows | Any) -> DataPart:
    """The part with whose rows these are. Raises DataError."""
    column = loaded.config.user_column
    if column is None or train.owners is not None:
        return train
    persons = owner_digests(train.columns[column], train.source, column)
    if isinstance(found, TableRows):
        places = np.concatenate([batch.places for batch in found.batches()])
    else:
        places = np.arange(train.rows)
    return replace(train, owners=np.unique(persons, return_inverse=True)[1], places=places)


def load_unlabelled(loaded: LoadedConfig, name: str, dataset: Dataset) -> DataPart:
    """The features of one more file of the same kind as the data. Raises DataError."""
    encoder: Any = dataset.encoder
    return encoder.part(_read(loaded, name, ()))


def _read(
    loaded: LoadedConfig, named: str | IdxFiles, columns: Sequence[str], rows: int | None = None
) -> TableRows | TableColumns | DataPart:
    data, directory = loaded.config.data, loaded.directory
    if isinstance(data, TableData):
        return TableRows(directory / str(named), data, columns, rows)
    if isinstance(data, PairsData):
        return read_pairs(data, directory / str(named), columns, rows)
    return read_arrays(data, directory, named, columns, rows)


def _require_other_labels(loaded: LoadedConfig, test_columns: Collection[str]) -> None:
    """Raise DataError if test metrics would be computed from the labels that a method protects.

    The metrics and the best constant are written down without noise. What is refused is one file in
    both parts, by any name. Copies of rows are not found.
    """
    data, method = loaded.config.data, loaded.config.method
    other = isinstance(method, Privatized) and method.column not in (None, data.label)
    if data.test is None or not test_columns or other or isinstance(method, NoMethod):
        return
    ours, theirs = (_label_files(loaded, part) for part in (data.train, data.test))
    if shared := sorted(path for key, path in theirs.items() if key in ours):
        raise DataError(
            f"{shared[0]}: is also in the training part; metrics on its true labels would disclose "
            "them; test on other rows, or remove data.test"
        )


def _label_files(loaded: LoadedConfig, named: str | IdxFiles) -> dict[tuple[int, int], str]:
    """The files with the labels of a part: device and inode, and name. Raises DataError."""
    path = loaded.directory / (named.labels if isinstance(named, IdxFiles) else named)
    there = [each for each in files_of(path) if each.exists()]  # others are refused later
    found = [(each, each.stat()) for each in there]
    return {(status.st_dev, status.st_ino): str(each) for each, status in found}


def _require_true_labels(
    loaded: LoadedConfig, dataset: Dataset, train: Collection[str], test: Collection[str]
) -> None:
    """Raise DataError if a column that should hold true labels is marked as private.

    ``train`` and ``test`` are the columns that are read from each part. Others are ignored.
    """
    method, label = loaded.config.method, loaded.config.data.label
    hint, column = _TRAIN, label
    if isinstance(method, Privatized):
        hint, column = _RANDOMIZED_HERE, method.column or label
        train = train if method.private_column is None else ()
    read = [(dataset.train, train, column, hint), (dataset.test, test, label, _TEST)]
    for part, columns, name, way_out in read:
        for path, metadata in part.files if part is not None and name in columns else ():
            require_true(path, metadata, name, way_out)
