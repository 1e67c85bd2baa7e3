"""From label columns to the targets of a loss.

No message quotes a label, counts labels, or says which row one stands in: that a column is refused
is all that a log may hold. A column of a CSV file is read cell by cell, as the task declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import by_entries, distinct
from numpy.typing import NDArray

from labeldp_compile.tabular.csv_file import empty_is_null
from labeldp_compile.tabular.number_cells import labels_of_cells, number_in
from labeldp_trainer.errors import DataError


@dataclass(frozen=True)
class Cells:
    """Text [n] without a type: nothing is inferred, so that no cell decides how another is read.

    Attributes:
        values: an Arrow array of large strings, without nulls.
    """

    values: pa.LargeStringArray

    def __len__(self) -> int:
        """How many there are."""
        return len(self.values)

    def take(self, rows: NDArray[np.int64]) -> Cells:
        """The cells of these rows."""
        return Cells(self.values.take(pa.array(rows)))

    def numbers(self) -> NDArray[np.float64]:
        """[n] by the grammar of ``number_cells``; NaN for what is no number."""
        return labels_of_cells(self.values, "float64", math.nan)

    def names(self) -> pa.Array:
        """[n] ids or categories; null for an empty cell."""
        return empty_is_null(self.values)

    def read(self, one: Callable[[bytes], int]) -> NDArray[np.int64]:
        """[n] what ``one`` makes of each cell, in UTF-8; few differ, mostly: each is read once."""
        encoded = distinct(self.values)
        found = [one(cell) for cell in encoded.dictionary.to_pylist()]
        entries = np.array([*found, 0], np.int64)  # the last one is that of nulls
        result: NDArray[Any] = by_entries(encoded, entries)
        return result


def taken(column: Any, rows: NDArray[np.int64]) -> Any:
    """These rows of a column [n], of whatever kind."""
    return column.take(rows) if isinstance(column, pa.Array | Cells) else column[rows]


@dataclass(frozen=True)
class Task:
    """What is predicted: a number, or one of ``classes``."""

    classes: tuple[int | str, ...] | None = None

    @property
    def outputs(self) -> int:
        """Outputs of the model."""
        return 1 if self.classes is None else len(self.classes)

    def targets(self, values: Any, source: str, column: str) -> NDArray[Any]:
        """float32 [n] numbers, or int32 [n] indices of classes. Raises DataError."""
        if self.classes is not None:
            found = places(values, self.classes)
            if (found < 0).any():
                raise DataError(
                    f"{source}: {column!r}: some labels are none of the {len(self.classes)} "
                    "classes: list every class, in the type that the column has, if it declares "
                    "one; real numbers, as unbiased randomizers give, are for a regression loss"
                )
            return found.astype(np.int32)
        array = values.numbers() if isinstance(values, Cells) else as_numpy(values)
        if array.dtype.kind not in "buif":
            raise DataError(f"{source}: {column!r} does not hold numbers")
        with np.errstate(all="ignore"):  # numpy would warn of a label that float32 does not hold
            numbers = array.astype(np.float32)
        if not np.isfinite(numbers).all():
            raise DataError(f"{source}: {column!r} has labels that are missing, NaN or infinite")
        return numbers


def places(values: Any, known: Sequence[int | str | float]) -> NDArray[np.int64]:
    """[n] the place of every value among the known ones, −1 of one that is not there.

    Numbers of any type find theirs: 3.0 is 3. A cell of a CSV file is the known text that it is, or
    else the known number that it is by the grammar of ``number_cells``.
    """
    place = {value: index for index, value in enumerate(known)}
    if isinstance(values, Cells):
        return values.read(_finder(place))
    return np.array([place.get(value, -1) for value in _items(values)], np.int64)


def _items(values: Any) -> list[Any]:
    """Each value alone: a null elsewhere must not make floats of large integers."""
    if isinstance(values, pa.Array | pa.ChunkedArray) and pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = getattr(values, "type", None)
    if kind is not None and pa.types.is_nested(kind):
        return [None] * len(values)  # lists are no classes, and cannot be looked up
    if kind is not None and pa.types.is_integer(kind):
        found: list[Any] = values.to_pylist()
        return found
    items: list[Any] = as_numpy(values).tolist()
    return items


def _finder(place: Mapping[int | str | float, int]) -> Callable[[bytes], int]:
    nearest = {value: index for value, index in place.items() if isinstance(value, float)}

    def find(cell: bytes) -> int:
        text = cell.decode()
        if text in place:
            return place[text]
        number: Any = number_in(cell)
        if number is None:
            return -1
        return place[number] if number in place else nearest.get(float(number), -1)

    return find


def as_numpy(values: Any) -> NDArray[Any]:
    """A column as numpy: numbers keep their type, nulls become NaN or None, cells are names."""
    if isinstance(values, Cells):
        values = values.names()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values)
