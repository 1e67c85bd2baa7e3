"""How features become arrays: what a run keeps of it, so that its model sees others alike.

A table's numbers are standardised, its categories become codes, as the training features say; an
archive or file of images has one shape, and bytes become [0, 1]. All of it is public: no label
enters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, TypeAdapter

from labeldp_trainer.data.dataset import DataPart, FeatureShape
from labeldp_trainer.errors import DataError

if TYPE_CHECKING:
    from labeldp_trainer.data.table import TableColumns

MOST_BYTE = 255
_PLANE = 2  # dimensions that no example has


@dataclass(frozen=True)
class TableEncoder:
    """From columns to arrays, as the training features say.

    Attributes:
        numeric: names of the numeric columns, in their order.
        means: [numeric] what is taken off.
        deviations: [numeric] what is divided by; never 0.
        categorical: names of the categorical columns, in their order.
        vocabularies: of each the categories, sorted; code 0 is any other text, and none.
    """

    numeric: tuple[str, ...]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    categorical: tuple[str, ...]
    vocabularies: tuple[pa.Array, ...]

    @property
    def shape(self) -> FeatureShape:
        """Of one example."""
        return FeatureShape(len(self.numeric), tuple(len(v) + 1 for v in self.vocabularies))

    @classmethod
    def of(
        cls, train: TableColumns, numeric: tuple[str, ...], categorical: tuple[str, ...], path: Path
    ) -> TableEncoder:
        """That of training features. Raises DataError if they have no mean or are no text."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, deviations = train.numbers.mean(axis=0), train.numbers.std(axis=0)
        for name, mean, deviation in zip(numeric, means, deviations, strict=True):
            if not math.isfinite(mean) or not math.isfinite(deviation):
                raise DataError(f"{path}: the numbers in {name!r} are too large: rescale them")
        return cls(
            numeric,
            means,
            np.where(deviations > 0, deviations, 1.0),
            categorical,
            tuple(map(_sorted_unique, train.texts)),
        )

    def part(self, found: TableColumns, path: Path) -> DataPart:
        """The arrays of columns. Raises DataError for numbers that float32 cannot hold."""
        codes = np.zeros((found.rows, len(found.texts)), np.int32)
        for j, (text, known) in enumerate(zip(found.texts, self.vocabularies, strict=True)):
            places = pc.fill_null(pc.index_in(text, value_set=known), -1)
            codes[:, j] = pc.add(places, 1).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            standard = (found.numbers - self.means) / self.deviations
            numbers = standard.astype(np.float32)
        beyond = np.count_nonzero(~np.isfinite(numbers), axis=0)
        for name, count in zip(self.numeric, beyond, strict=True):
            if count:
                raise DataError(
                    f"{path}: {count:,} of {found.rows:,} rows have a number in the feature "
                    f"{name!r} that is too far from those of training: float32 cannot hold it"
                )
        features = {"numeric": numbers, "categorical": codes}
        return DataPart(features, found.rows, found.others, str(path), found.files)

    def to_json(self) -> dict[str, Any]:
        """What ``encoder_of`` reads. Raises DataError for categories that are no UTF-8."""
        columns = zip(self.numeric, self.means, self.deviations, strict=True)
        stated = _StatedTable(
            kind="table",
            numeric=[
                _StatedNumbers(name=name, mean=float(mean), deviation=float(deviation))
                for name, mean, deviation in columns
            ],
            categorical=[
                _StatedTexts(name=name, vocabulary=_texts(name, vocabulary))
                for name, vocabulary in zip(self.categorical, self.vocabularies, strict=True)
            ],
        )
        return stated.model_dump()


@dataclass(frozen=True)
class ArrayEncoder:
    """Arrays as they are.

    Attributes:
        example: the shape of one example, [p] or [height, width, channels].
        bytes_: whether the training features were uint8, which become [0, 1].
    """

    example: tuple[int, ...]
    bytes_: bool

    @property
    def shape(self) -> FeatureShape:
        """Of one example."""
        if len(self.example) == 1:
            return FeatureShape(numeric=self.example[0])
        height, width, channels = self.example
        return FeatureShape(image=(height, width, channels))

    def to_json(self) -> dict[str, Any]:
        """What ``encoder_of`` reads."""
        stated = _StatedArray(kind="array", example=list(self.example), bytes=self.bytes_)
        return stated.model_dump()


Encoder = TableEncoder | ArrayEncoder


class _Stated(BaseModel):
    """A part of ``encoder.json``; later versions may add keys."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _StatedNumbers(_Stated):
    name: str
    mean: float
    deviation: float = Field(gt=0)


class _StatedTexts(_Stated):
    name: str
    vocabulary: list[str]


class _StatedTable(_Stated):
    kind: Literal["table"]
    numeric: list[_StatedNumbers]
    categorical: list[_StatedTexts]


class _StatedArray(_Stated):
    kind: Literal["array"]
    example: list[PositiveInt] = Field(min_length=1, max_length=3)
    bytes: bool


_STATED: TypeAdapter[_StatedTable | _StatedArray] = TypeAdapter(
    Annotated[_StatedTable | _StatedArray, Field(discriminator="kind")]
)


def encoder_of(stated: object) -> Encoder:
    """The encoder that ``to_json`` wrote. Raises ValueError."""
    found = _STATED.validate_python(stated)
    if isinstance(found, _StatedArray):
        if len(found.example) == _PLANE:
            raise ValueError("an example is flat, or an image")
        return ArrayEncoder(tuple(found.example), found.bytes)
    return TableEncoder(
        tuple(column.name for column in found.numeric),
        np.array([column.mean for column in found.numeric]),
        np.array([column.deviation for column in found.numeric]),
        tuple(column.name for column in found.categorical),
        tuple(pa.array(column.vocabulary, pa.large_string()) for column in found.categorical),
    )


def _sorted_unique(texts: pa.Array) -> pa.Array:
    """Null is no category: it is out of vocabulary."""
    return pc.unique(pc.drop_null(texts)).sort()


def _texts(name: str, vocabulary: pa.Array) -> list[str]:
    try:
        texts: list[str] = vocabulary.to_pylist()
    except UnicodeDecodeError:
        raise DataError(f"the categorical column {name!r} holds text that is no UTF-8") from None
    return texts
