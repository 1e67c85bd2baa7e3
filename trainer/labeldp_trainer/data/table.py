"""Parquet and CSV files: numeric columns standardised, categorical columns as codes.

Means, standard deviations and vocabularies come from the training features. Label DP takes
features as public; where they are not, these statistics must not be used either.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.dataset import Dataset, FeatureShape, Part
from labeldp_trainer.errors import DataError


def load_table(
    config: TableData, directory: Path, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The tables of a config, with the label columns of each part. Raises DataError."""
    wanted = [*config.numeric, *config.categorical]
    path = directory / config.train
    train = _read(path, [*wanted, *train_columns])
    if config.rows is not None:
        train = train.slice(0, config.rows)
    if train.num_rows == 0:
        raise DataError(f"{path}: has no rows")
    encoder = _Encoder.of(train, config, path)
    shape = FeatureShape(len(config.numeric), tuple(len(v) + 1 for v in encoder.vocabularies))
    train_part = encoder.part(train, config, path, train_columns)
    if config.test is None:
        return Dataset(shape, train_part, None)
    path = directory / config.test
    test = _read(path, [*wanted, *test_columns])
    if test.num_rows == 0:
        raise DataError(f"{path}: has no rows")
    return Dataset(shape, train_part, encoder.part(test, config, path, test_columns))


@dataclass(frozen=True)
class _Encoder:
    """From columns to arrays, as the training features say."""

    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    vocabularies: tuple[pa.Array, ...]

    @classmethod
    def of(cls, table: pa.Table, config: TableData, path: Path) -> _Encoder:
        numbers = _numbers(table, config.numeric, path)
        deviations = numbers.std(axis=0)
        texts = (_texts(table, name, path) for name in config.categorical)
        return cls(
            numbers.mean(axis=0),
            np.where(deviations > 0, deviations, 1.0),
            tuple(_sorted_unique(text) for text in texts),
        )

    def part(self, table: pa.Table, config: TableData, path: Path, columns: Sequence[str]) -> Part:
        numbers = _numbers(table, config.numeric, path)
        codes = np.zeros((table.num_rows, len(config.categorical)), np.int32)
        for j, (name, known) in enumerate(zip(config.categorical, self.vocabularies, strict=True)):
            found = pc.index_in(_texts(table, name, path), value_set=known)
            codes[:, j] = pc.add(pc.fill_null(found, -1), 1).to_numpy(zero_copy_only=False)
        features = {
            "numeric": ((numbers - self.means) / self.deviations).astype(np.float32),
            "categorical": codes,
        }
        labels = {name: table.column(name).combine_chunks() for name in columns}
        return Part(features, table.num_rows, labels, str(path))


def _sorted_unique(texts: pa.Array) -> pa.Array:
    """Null is no category: it is out of vocabulary."""
    return pc.unique(pc.drop_null(texts)).sort()


def _numbers(table: pa.Table, names: Sequence[str], path: Path) -> NDArray[np.float64]:
    result = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        column = table.column(name)
        kind = column.type
        usable = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (usable or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            hint = "list it under categorical"
            raise DataError(f"{path}: the numeric column {name!r} holds {kind}: {hint}")
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        result[:, j] = column.cast(pa.float64(), safe=False).to_numpy()
        gaps = int(np.count_nonzero(~np.isfinite(result[:, j])))
        if gaps:
            raise DataError(
                f"{path}: {gaps:,} of {table.num_rows:,} rows have no finite number in the feature "
                f"{name!r}: fill these in, drop the rows, or list the column under categorical"
            )
    return result


def _texts(table: pa.Table, name: str, path: Path) -> pa.Array:
    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        raise DataError(f"{path}: the categorical column {name!r} holds {kind}, not categories")
    return column.cast(pa.string())


def _read(path: Path, names: Sequence[str]) -> pa.Table:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq"):
        raise DataError(f"{path}: expected a .parquet or .csv file")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    names = list(dict.fromkeys(names))
    try:
        known = _names(path, is_csv=suffix == ".csv")
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(f"{path}: is empty, or not a {suffix[1:].upper()} file") from None
    for name in names:
        if known.count(name) > 1:
            raise DataError(f"{path}: has several columns called {name!r}")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            listed = ", ".join(map(repr, known[:12])) or "none"
            hint = f"did you mean {close[0]!r}?" if close else f"its columns: {listed}"
            raise DataError(f"{path}: has no column {name!r}; {hint}")
    try:
        if suffix == ".csv":
            options: Any = pa_csv.ConvertOptions(include_columns=names, strings_can_be_null=True)
            return pa_csv.read_csv(path, convert_options=options)
        return pq.read_table(path, columns=names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # The message of Arrow may quote a label: say only that something is wrong.
        raise DataError(f"{path}: is damaged, and cannot be read to the end") from None


def _names(path: Path, *, is_csv: bool) -> list[str]:
    if is_csv:
        with pa_csv.open_csv(path) as reader:
            return list(reader.schema.names)
    return list(pq.read_schema(path).names)
