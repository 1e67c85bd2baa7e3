"""The encoders that make arrays of features.

A run keeps its encoder, so that new rows are encoded the same way.

For tables, numbers are standardized and categories become codes, both from the training features.
Archives and image files have a fixed shape, and bytes become [0, 1]. All of this is public and
depends on no label. If features are not public, do not use these statistics.

A number is standardized in float64, and then rounded to float32. So numbers keep their order, and
two numbers stay apart if they differ by more than 2^-23 of their larger distance from the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from labeldp_trainer.config.data import DATE_FEATURES, TableData
from labeldp_trainer.data.features import DataPart, FeatureShape, array_digest, room
from labeldp_trainer.data.table import TableColumns, TableRows, whole_column
from labeldp_trainer.errors import DataError

_BLOCK = 1 << 16  # rows


class _Stated(BaseModel):
    """A part of ``encoder.json``."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class _Column(_Stated):
    name: str


class NumericColumn(_Column):
    """The mean to subtract and the deviation to divide by."""

    mean: float
    deviation: float = Field(gt=0)


class CategoricalColumn(_Column):
    """The sorted categories of a column. Code 0 is any other text, or none."""

    vocabulary: list[str]


class ExposureColumn(_Column):
    """The mean to divide by."""

    mean: float = Field(gt=0)


class TableEncoder(_Stated):
    """Turns table columns into arrays, with statistics of the training features.

    Attributes:
        numeric: the numeric features, those of dates last.
        categorical: the categorical columns.
        dates: the columns of dates.
        takes_missing_numbers: whether missing numbers and dates become NaN; otherwise an error.
        exposure, weights: their columns.
    """

    kind: Literal["table"] = "table"
    numeric: list[NumericColumn]
    categorical: list[CategoricalColumn]
    dates: list[str]
    takes_missing_numbers: bool
    exposure: ExposureColumn | None = None
    weights: str | None = None

    @property
    def numeric_columns(self) -> list[NumericColumn]:
        """The numeric features that are columns themselves."""
        return self.numeric[: _columns_before(self.numeric, self.dates)]

    @property
    def shape(self) -> FeatureShape:
        """The shape of one example."""
        sizes = (len(column.vocabulary) + 1 for column in self.categorical)
        return FeatureShape(len(self.numeric), tuple(sizes))

    @property
    def means(self) -> NDArray[np.float64]:
        """The means [numeric]."""
        return np.array([column.mean for column in self.numeric])

    @property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviations [numeric]."""
        return np.array([column.deviation for column in self.numeric])

    @cached_property
    def _known(self) -> list[pa.Array]:
        return [pa.array(column.vocabulary, pa.large_string()) for column in self.categorical]

    @classmethod
    def of(
        cls,
        train: TableRows | TableColumns,
        config: TableData,
        *,
        takes_missing_numbers: bool = False,
    ) -> TableEncoder:
        """The encoder from training features, with statistics of the numbers that are there.

        Raises DataError if numbers are missing or too large, no date of a column can be read, or
        text is not UTF-8.
        """
        names, dates = config.numeric_features, config.dates
        gaps = _Gaps(names, dates, missing=takes_missing_numbers)
        known = [pa.array([], pa.large_string()) for _ in config.categorical]
        some, strange = np.zeros((2, len(dates)), bool)  # dates, and text that is none
        exposure = _Positive("exposure", config.exposure)

        def numbers() -> Iterator[NDArray[np.float64]]:
            for batch in train.batches():
                first = batch.numbers[:, len(config.numeric) :: len(DATE_FEATURES)]
                some[:] |= np.isfinite(first).any(axis=0)
                strange[:] |= np.isinf(first).any(axis=0)
                for j, texts in enumerate(batch.texts):
                    known[j] = pc.unique(pa.concat_arrays([known[j], pc.drop_null(texts)]))
                each = [gaps.of(batch)]
                if (factors := exposure.of(batch)) is not None:
                    each.append(factors[:, None])
                yield np.concatenate(each, axis=1)

        means, deviations = _moments(numbers(), len(names) + (config.exposure is not None))
        gaps.require_none(train)
        for j in np.flatnonzero(strange & ~some):
            raise _no_dates(train, dates[j], train.rows)
        exposure.require_all(train)
        numeric, categorical = [], []
        for name, mean, deviation in zip(names, means, deviations, strict=False):
            if not math.isfinite(mean) or not math.isfinite(deviation):
                raise DataError(
                    f"{train.source}: the numbers in {name!r} are too large; rescale them"
                )
            divisor = float(deviation) if deviation > 0 else 1.0
            numeric.append(NumericColumn(name=name, mean=float(mean), deviation=divisor))
        for name, texts in zip(config.categorical, known, strict=True):
            try:  # null gets the code of unknown categories
                vocabulary = texts.sort().to_pylist()
            except UnicodeDecodeError:
                reason = (
                    f"{train.source}: the categorical column {name!r} holds text that is not UTF-8"
                )
                raise DataError(reason) from None
            categorical.append(CategoricalColumn(name=name, vocabulary=vocabulary))
        column = None
        if config.exposure is not None:
            column = ExposureColumn(name=config.exposure, mean=float(means[-1]))
        return cls(
            numeric=numeric,
            categorical=categorical,
            dates=list(dates),
            takes_missing_numbers=takes_missing_numbers,
            exposure=column,
            weights=config.weights,
        )

    def part(self, found: TableRows | TableColumns) -> DataPart:
        """The columns as arrays. Raises DataError for numbers that are too large for float32."""
        names = [column.name for column in self.numeric]
        gaps = _Gaps(names, self.dates, missing=self.takes_missing_numbers)
        exposure = _Positive("exposure", None if self.exposure is None else self.exposure.name)
        weights = _Positive("weights", self.weights)
        beyond = np.zeros(len(names), np.int64)
        features = {
            "numeric": room((found.rows, len(names)), np.float32),
            "categorical": room((found.rows, len(self.categorical)), np.int32),
        }
        others, files, start = list[Mapping[str, Any]](), dict[Path, Any](), 0
        for batch in found.batches():
            own, start = slice(start, start + batch.rows), start + batch.rows
            given = gaps.of(batch)
            with np.errstate(over="ignore", invalid="ignore"):
                standard = ((given - self.means) / self.deviations).astype(np.float32)
            features["numeric"][own] = standard
            beyond += np.count_nonzero(np.isinf(standard), axis=0)
            for j, (text, known) in enumerate(zip(batch.texts, self._known, strict=True)):
                places = pc.fill_null(pc.index_in(text, value_set=known), -1)
                features["categorical"][own, j] = pc.add(places, 1).to_numpy(zero_copy_only=False)
            for each, divisor in ((exposure, self.exposure), (weights, None)):
                if (numbers := each.of(batch)) is not None:
                    if each.key not in features:
                        features[each.key] = room((found.rows,), np.float32)
                    features[each.key][own] = numbers / (1.0 if divisor is None else divisor.mean)
            others.append(batch.others)
            files |= dict(batch.files)
        gaps.require_none(found)
        exposure.require_all(found)
        weights.require_all(found)
        for column, count in zip(self.numeric, beyond.tolist(), strict=True):
            if count:
                raise DataError(
                    f"{found.source}: {count:,} of {found.rows:,} rows have a number in the "
                    f"feature {column.name!r} that is too far from those of training for float32"
                )
        columns = {
            name: whole_column(found.source, name, [each[name] for each in others])
            for name in others[0]
        }
        return DataPart(
            features,
            found.rows,
            columns,
            found.source,
            tuple(files.items()),
            owners=found.owners,
            places=found.places,
        )


class _Gaps:
    """Numbers of batches, and how many of a feature are missing that must be there."""

    def __init__(self, names: Sequence[str], dates: Sequence[str], *, missing: bool) -> None:
        """With ``missing``, missing ones are NaN."""
        self._names, self._dates, self._missing = names, dates, missing
        self._columns = _columns_before(names, dates)
        self._counts = np.zeros(len(names), np.int64)

    def of(self, batch: TableColumns) -> NDArray[np.float64]:
        """The numbers [b, numeric], those of dates last."""
        numbers = batch.numbers
        if self._missing:
            numbers = np.where(np.isnan(numbers), np.nan, numbers)  # one NaN of many
            of_dates = numbers[:, self._columns :]
            of_dates[np.isinf(of_dates)] = np.nan
        gaps = np.isinf(numbers) if self._missing else ~np.isfinite(numbers)
        self._counts += np.count_nonzero(gaps, axis=0)
        return numbers

    def require_none(self, found: TableRows | TableColumns) -> None:
        """Raise DataError if a numeric feature has no number in a row."""
        for j in np.flatnonzero(self._counts).tolist():
            count = int(self._counts[j])
            if j >= self._columns:
                name = self._dates[(j - self._columns) // len(DATE_FEATURES)]
                raise _no_dates(found, name, count)
            remedy = (
                "leave these cells empty"
                if self._missing
                else "fill these in, drop the rows, take a model that allows them (method: {kind: "
                "staged_release}, or model: {kind: interactions})"
            )
            raise DataError(
                f"{found.source}: {count:,} of {found.rows:,} rows have no finite number in the "
                f"feature {self._names[j]!r}; {remedy}, or list the column under categorical"
            )


class _Positive:
    """A column of positive numbers that float32 can hold, if it is named and there."""

    def __init__(self, key: str, name: str | None) -> None:
        """``key`` is its word in messages."""
        self.key = key
        self._name, self._gaps = name, 0

    def of(self, batch: TableColumns) -> NDArray[np.float64] | None:
        """[b] of a batch; predictions need no weights."""
        if self._name is None or self._name not in batch.factors:
            return None
        numbers, largest = batch.factors[self._name], float(np.finfo(np.float32).max)
        self._gaps += int((~((numbers > 1 / largest) & (numbers < largest))).sum())
        return numbers

    def require_all(self, found: TableRows | TableColumns) -> None:
        """Raise DataError if a row has no such number."""
        if self._gaps:
            raise DataError(
                f"{found.source}: {self._gaps:,} of {found.rows:,} rows have no positive number in "
                f"the column of {self.key} {self._name!r}; drop these rows"
            )


def _no_dates(found: TableRows | TableColumns, name: str, count: int) -> DataError:
    return DataError(
        f"{found.source}: {count:,} of {found.rows:,} rows have no date in the feature {name!r}; "
        "expected YYYY-MM-DD, or a date and a time such as 2026-03-31T17:30:00Z; fill these in, "
        "drop the rows, or list the column under categorical"
    )


def _columns_before(numeric: Sequence[Any], dates: Sequence[str]) -> int:
    """How many numeric features come before those of dates."""
    return len(numeric) - len(DATE_FEATURES) * len(dates)


def _moments(
    batches: Iterable[NDArray[np.float64]], width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and standard deviation of each column [b, k] of batches without NaN; 0 for none.

    Of one block of rows without NaN, the same bits as numpy's ``mean`` and ``std``; blocks are
    joined as by Chan, Golub and LeVeque (1983). How a table is divided into batches does not
    matter.
    """
    count, mean, squares = np.zeros(width), np.zeros(width), np.zeros(width)
    for numbers in _blocks(batches):
        there = ~np.isnan(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            own = np.count_nonzero(there, axis=0)
            own_mean = np.where(there, numbers, 0).sum(axis=0) / np.maximum(own, 1)
            apart = np.where(there, numbers - own_mean, 0)
            total = count + own
            share = own / np.maximum(total, 1)
            moved = own_mean - mean
            mean = mean + moved * share
            squares = squares + (apart * apart).sum(axis=0) + moved * moved * count * share
            count = total
    with np.errstate(over="ignore", invalid="ignore"):
        return mean, np.sqrt(squares / np.maximum(count, 1))


def _blocks(batches: Iterable[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """The rows in blocks of _BLOCK; the last one may have fewer."""
    waiting, there = list[NDArray[np.float64]](), 0
    for batch in batches:
        waiting.append(batch)
        there += len(batch)
        while there >= _BLOCK:
            whole = np.concatenate(waiting)
            yield whole[:_BLOCK]
            waiting, there = [whole[_BLOCK:]], there - _BLOCK
    if there:
        yield np.concatenate(waiting)


class ArrayEncoder(_Stated):
    """Uses arrays unchanged.

    Attributes:
        example: the shape of one example, [p] or [height, width, channels].
        bytes: whether the training features were uint8 and were scaled to [0, 1].
    """

    kind: Literal["array"] = "array"
    example: (
        Annotated[tuple[PositiveInt], Field(strict=False)]
        | Annotated[tuple[PositiveInt, PositiveInt, PositiveInt], Field(strict=False)]
    )
    bytes: bool

    @property
    def shape(self) -> FeatureShape:
        """The shape of one example."""
        if len(self.example) == 1:
            return FeatureShape(numeric=self.example[0])
        return FeatureShape(image=self.example)

    @classmethod
    def of(cls, train: DataPart) -> ArrayEncoder:
        """The encoder from training features."""
        return cls(example=train.features.shape[1:], bytes=train.bytes_)

    def part(self, found: DataPart) -> DataPart:
        """The arrays. Raises DataError if examples have another shape."""
        shape = found.features.shape[1:]
        if shape != self.example:
            raise DataError(
                f"{found.source}: an example has shape {list(shape)}; in training it was "
                f"{list(self.example)}"
            )
        return found


Encoder = TableEncoder | ArrayEncoder


@dataclass(frozen=True)
class Dataset:
    """A training part and an optional test part.

    Attributes:
        shape: the shape of an example.
        train: the training part.
        test: the test part, if there is one.
        input_digest: digest of the features if a representation replaced them.
        encoder: turns features of files into arrays; None for arrays made in memory.
    """

    shape: FeatureShape
    train: DataPart
    test: DataPart | None
    input_digest: str | None = None
    encoder: Encoder | None = None

    @property
    def parts(self) -> list[DataPart]:
        """The training part, then the test part if there is one."""
        return [part for part in (self.train, self.test) if part is not None]

    def digest(self) -> str:
        """SHA-256 of the training features, which are public. It does not depend on labels."""
        return self.input_digest or array_digest(self.train.features)


class EncoderFile(_Stated):
    """``encoder.json``: what ``labeldp predict`` needs in addition to config and parameters.

    Attributes:
        features: how features become arrays.
        classes: the classes of a classification; None for numbers.
        model_from: ``config``, or ``python`` if Python code passed the model.
        data_directory: where the paths of the config start, relative to the run folder.
    """

    format_version: Literal["1.0"] = "1.0"
    features: Annotated[Encoder, Field(discriminator="kind")]
    classes: list[int | str] | None
    model_from: Literal["config", "python"]
    data_directory: str
