"""Tables: numeric columns standardised, categorical columns as codes.

Means, standard deviations and vocabularies come from the training features. Label DP takes
features as public; where they are not, these statistics must not be used either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.columns import Columns, read_columns
from labeldp_trainer.data.dataset import Dataset, FeatureShape, Part
from labeldp_trainer.errors import DataError


def load_table(
    config: TableData, directory: Path, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The tables of a config, with the columns that each part needs, the label first.

    Raises DataError.
    """
    path = directory / config.train
    train = read_columns(path, config, train_columns, config.rows)
    _require_finite(train, config, path)
    encoder = _Encoder.of(train)
    shape = FeatureShape(len(config.numeric), tuple(len(v) + 1 for v in encoder.vocabularies))
    train_part = encoder.part(train, path)
    if config.test is None:
        return Dataset(shape, train_part, None)
    path = directory / config.test
    test = read_columns(path, config, test_columns)
    _require_finite(test, config, path)
    return Dataset(shape, train_part, encoder.part(test, path))


@dataclass(frozen=True)
class _Encoder:
    """From columns to arrays, as the training features say."""

    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    vocabularies: tuple[pa.Array, ...]

    @classmethod
    def of(cls, train: Columns) -> _Encoder:
        deviations = train.numbers.std(axis=0)
        return cls(
            train.numbers.mean(axis=0),
            np.where(deviations > 0, deviations, 1.0),
            tuple(_sorted_unique(text) for text in train.texts),
        )

    def part(self, found: Columns, path: Path) -> Part:
        codes = np.zeros((found.rows, len(found.texts)), np.int32)
        for j, (text, known) in enumerate(zip(found.texts, self.vocabularies, strict=True)):
            places = pc.fill_null(pc.index_in(text, value_set=known), -1)
            codes[:, j] = pc.add(places, 1).to_numpy(zero_copy_only=False)
        numbers = (found.numbers - self.means) / self.deviations
        features = {"numeric": numbers.astype(np.float32), "categorical": codes}
        return Part(features, found.rows, found.others, str(path))


def _sorted_unique(texts: pa.Array) -> pa.Array:
    """Null is no category: it is out of vocabulary."""
    return pc.unique(pc.drop_null(texts)).sort()


def _require_finite(found: Columns, config: TableData, path: Path) -> None:
    gaps = np.count_nonzero(~np.isfinite(found.numbers), axis=0)
    for name, count in zip(config.numeric, gaps, strict=True):
        if count:
            raise DataError(
                f"{path}: {count:,} of {found.rows:,} rows have no finite number in the feature "
                f"{name!r}: fill these in, drop the rows, or list the column under categorical"
            )
