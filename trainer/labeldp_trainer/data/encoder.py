"""How features become arrays: what a run keeps of it, so that its model sees others alike.

A table's numbers are standardised, its categories become codes, as the training features say; an
archive or file of images has one shape, and bytes become [0, 1]. All of it is public: no label
enters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labeldp_trainer.data.dataset import FeatureShape, Part
from labeldp_trainer.errors import DataError

if TYPE_CHECKING:
    from labeldp_trainer.data.table import Columns

MOST_BYTE = 255


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
        cls, train: Columns, numeric: tuple[str, ...], categorical: tuple[str, ...], path: Path
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

    def part(self, found: Columns, path: Path) -> Part:
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
        return Part(features, found.rows, found.others, str(path), found.files)

    def to_json(self) -> dict[str, Any]:
        """What ``encoder_of`` reads. Raises DataError for categories that are no UTF-8."""
        columns = zip(self.numeric, self.means, self.deviations, strict=True)
        return {
            "kind": "table",
            "numeric": [
                {"name": name, "mean": float(mean), "deviation": float(deviation)}
                for name, mean, deviation in columns
            ],
            "categorical": [
                {"name": name, "vocabulary": _texts(name, vocabulary)}
                for name, vocabulary in zip(self.categorical, self.vocabularies, strict=True)
            ],
        }


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
        return {"kind": "array", "example": list(self.example), "bytes": self.bytes_}


Encoder = TableEncoder | ArrayEncoder


def encoder_of(stated: Mapping[str, Any]) -> Encoder:
    """The encoder that ``to_json`` wrote. Raises ValueError, KeyError or TypeError."""
    if stated["kind"] == "array":
        example = tuple(_whole(size) for size in stated["example"])
        if len(example) not in (1, 3):
            raise ValueError("an example is flat, or an image")
        return ArrayEncoder(example, stated["bytes"] is True)
    if stated["kind"] != "table":
        raise ValueError("an unknown kind")
    numeric, categorical = list(stated["numeric"]), list(stated["categorical"])
    deviations = np.array([_finite(column["deviation"]) for column in numeric])
    if (deviations <= 0).any():
        raise ValueError("a deviation is positive")
    return TableEncoder(
        tuple(_text(column["name"]) for column in numeric),
        np.array([_finite(column["mean"]) for column in numeric]),
        deviations,
        tuple(_text(column["name"]) for column in categorical),
        tuple(
            pa.array([_text(item) for item in column["vocabulary"]], pa.large_string())
            for column in categorical
        ),
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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("expected a finite number")
    return float(value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("expected a whole number")
    return value
