"""Turns label columns into targets of a loss.

No message quotes a label, counts labels or names the row of one. A log may only show that a column
was refused. CSV columns are read cell by cell, as the task declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp_compile.toolkit import (
    by_entries,
    distinct,
    empty_is_null,
    is_number,
    is_text,
    labels_of_cells,
    number_in,
    plain_array,
)
from labeldp_trainer.errors import DataError


@dataclass(frozen=True)
class Cells:
    """Text [n] without a type. No type is inferred, so no cell decides how another is read.

    Attributes:
        values: an Arrow array of large strings, without nulls.
    """

    values: pa.LargeStringArray

    def __len__(self) -> int:
        """The number of cells."""
        return len(self.values)

    def take(self, rows: NDArray[np.int64]) -> Cells:
        """The cells of these rows."""
        return Cells(self.values.take(pa.array(rows)))

    def numbers(self) -> NDArray[np.float64]:
        """Numbers [n] by the grammar of ``number_cells``. NaN if a cell is not a number."""
        return labels_of_cells(self.values, "float64", math.nan)

    def names(self) -> pa.Array:
        """Ids or categories [n]. Null for an empty cell."""
        return empty_is_null(self.values)

    def read(self, one: Callable[[bytes], int]) -> NDArray[np.int64]:
        """The result [n] of ``one`` for each cell in UTF-8. Each distinct cell is read once."""
        return _read(self.values, one)


def _read(values: pa.Array, one: Callable[[bytes], int]) -> NDArray[np.int64]:
    """The result [n] of ``one`` for the bytes of each text; −1 for a null."""
    encoded = distinct(values)
    found = [one(text) for text in encoded.dictionary.to_pylist()]
    entries = np.array([*found, -1], np.int64)  # the last entry is for nulls
    return by_entries(encoded, entries)


def taken(column: Any, rows: NDArray[np.int64]) -> Any:
    """These rows of a column [n] of any kind."""
    return column.take(rows) if isinstance(column, pa.Array | Cells) else column[rows]


@dataclass(frozen=True)
class Task:
    """The kind of prediction: a number, or one of ``classes``."""

    classes: tuple[int | str, ...] | None = None

    @property
    def outputs(self) -> int:
        """The number of model outputs."""
        return 1 if self.classes is None else len(self.classes)

    def targets(self, values: Any, source: str, column: str) -> NDArray[Any]:
        """Numbers [n] in float32, or class indexes [n] in int32. Raises DataError."""
        if self.classes is not None:
            found = places(values, self.classes)
            if (found < 0).any():
                raise DataError(
                    f"{source}: {column!r}: some labels are none of the {len(self.classes):,} "
                    "classes, or missing; list every class in the type of the column. For real "
                    "numbers, as from an unbiased randomizer, use a regression loss"
                )
            return found.astype(np.int32)
        array = numbers(values)
        if array is None:
            raise DataError(f"{source}: {column!r} does not hold numbers")
        with np.errstate(all="ignore"):  # numpy would warn of a label that is too large for float32
            found = array.astype(np.float32)
        if not np.isfinite(found).all():
            raise DataError(f"{source}: {column!r} has labels that are missing, NaN or infinite")
        return found


def places(values: Any, known: Sequence[int | str | float]) -> NDArray[np.int64]:
    """The index [n] of every value among the known ones; −1 if it is unknown.

    Numbers match across types: 3.0 is 3. A CSV cell matches a known text, or else a known number by
    the grammar of ``number_cells``.
    """
    place = {value: index for index, value in enumerate(known)}
    if isinstance(values, Cells):
        return values.read(_finder(place))
    values = plain(values)
    if isinstance(values, pa.Array) and is_text(values.type):
        # pyarrow quotes text that is not UTF-8 in an error, so it is read as bytes
        encoded = {text.encode(): at for text, at in place.items() if isinstance(text, str)}
        return _read(values, lambda text: encoded.get(text, -1))
    return np.array([place.get(value, -1) for value in _items(values)], np.int64)


def numbers(values: Any) -> NDArray[Any] | None:
    """Numbers [n] or booleans of a column; None if its type has none. A null becomes NaN, and no
    label decides how another is read."""
    if isinstance(values, Cells):
        return values.numbers()
    values = plain(values)
    if isinstance(values, pa.Array):
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())  # with a null among them, they would be objects
        if not is_number(values.type):
            return None
    array = as_numpy(values)
    return array if array.dtype.kind in "buif" else None


def _items(values: Any) -> list[Any]:
    """The values one by one. A null must not turn large integers into floats."""
    kind = getattr(values, "type", None)
    if kind is not None and pa.types.is_nested(kind):
        return [None] * len(values)  # lists cannot be classes, and cannot be looked up
    if kind is not None and pa.types.is_integer(kind):
        return values.to_pylist()
    return as_numpy(values).tolist()


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


def plain(column: Any) -> Any:
    """A column in one piece; an array of Arrow in the type of its values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return plain_array(column) if isinstance(column, pa.Array) else column


def as_numpy(values: Any) -> NDArray[Any]:
    """A column as numpy. Numbers keep their type; nulls become NaN or None; cells become names."""
    values = plain(values.names() if isinstance(values, Cells) else values)
    if isinstance(values, pa.Array):
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values)
