"""Turns label columns into targets of a loss.

No message quotes a label, counts labels or names the row of one. A log may only show that a column
was refused. CSV columns are read cell by cell, as the task declares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int32
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

    def __getitem__(self, rows: slice) -> Cells:
        """The cells of these rows."""
        return Cells(self.values[rows])

    def take(self, rows: NDArray[np.int64]) -> Cells:
        """The cells of these rows."""
        return Cells(self.values.take(pa.array(rows)))

    def numbers(self) -> NDArray[np.float64]:
        """Numbers [n] by the runtime's grammar. NaN if a cell is not a number."""
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
    the runtime's grammar.
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


# Checks whether the type of a label column can hold labels at all, without reading a value.
#
# A method that replaces unknown labels by a default would accept a column of the wrong type
# without a message. Parquet files and archives declare types, which are public like column names.
# CSV cells declare no type, and checking their values would disclose true labels.

_UNKNOWN = "values of a type that labeldp does not know"
_WORDS = {  # by the type names of Arrow and numpy
    "booleans": r"bool",
    "numbers": r"u?int\d+|float\d*|halffloat|double|decimal\d+.*",
    "complex numbers": r"complex\d+",
    "text": r"(large_)?string(_view)?|str\d*",
    "bytes": r"((large|fixed_size)_)?binary(_view)?(\[.*)?|bytes\d*",
    "times": r"(date|time|duration|month_).*",
    "lists or structs": r"((large|fixed_size)_)?list.*|struct.*|map.*|.*union.*|void\d*",
    "nothing": r"null",
    _UNKNOWN: r"(?!object$).*",
}


def require_declared(
    values: Any, classes: tuple[int | str, ...] | None, source: str, column: str
) -> None:
    """Raise DataError if the declared type of a column can hold no number or none of the classes.

    Booleans are the numbers 0 and 1. A dictionary has the type of its values, an extension type
    that of its storage. A column without a declared type is accepted.
    """
    kind = declared(values)
    if kind is None or kind in _fitting(classes):
        return
    if classes is None:
        reason = "numbers are needed; use a column of numbers, or convert this one"
    else:
        reason = (
            f"none of the {len(classes):,} classes is of this type; list them in the type of "
            "the column (text in quotes, numbers without)"
        )
    raise DataError(f"{source}: {column!r} is declared to hold {kind}: {reason}")


def declared(values: Any) -> str | None:
    """The kind of a column [n] according to its type, in a word. None if no type is declared.

    It is a word because the exact type may disclose labels: the width of numpy text is the length
    of the longest label.
    """
    if isinstance(values, Cells):
        return None
    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = values.type
        name = str(plain_array(pa.nulls(0, kind)).type)
    else:
        name = np.asarray(values).dtype.name
    return next((word for word, form in _WORDS.items() if re.fullmatch(form, name)), None)


def _fitting(classes: tuple[int | str, ...] | None) -> set[str]:
    if classes is None:
        return {"numbers", "booleans"}
    found = {"text" if isinstance(each, str) else "numbers" for each in classes}
    if {0, 1} & {*classes}:
        found.add("booleans")
    return found


# True labels as private methods read them. No label is refused, counted or named.
#
# A refusal would tell that a label of some kind exists, which no ε covers.


def class_labels(
    values: Any, classes: tuple[int | str, ...], default: int | str | None
) -> Int32[np.ndarray, " n"]:
    """The place of each of n labels among the classes; that of the default for all others."""
    found = places(values, classes)
    other = 0 if default is None else classes.index(default)
    return np.where(found < 0, other, found).astype(np.int32)


def label_numbers(
    values: Any, low: float, high: float, default: float | None
) -> Float64[np.ndarray, " n"]:
    """n labels, moved into [low, high]. What is not a number becomes the default, or the middle."""
    found = numbers(values)
    other = (low + high) / 2 if default is None else default
    with np.errstate(all="ignore"):  # numpy would warn of some labels
        # the type of a column is public, and so it is if it says that there are no numbers
        each = np.full(len(values), np.nan) if found is None else found.astype(np.float64)
        inside: Float64[np.ndarray, " n"] = np.clip(
            np.where(np.isnan(each), other, each), low, high
        )
    return inside


# Targets with few distinct values: a row of numbers for each code, and a code for each example.
#
# A private label is one of m outputs. Training needs k numbers that depend on the output alone,
# so n examples take m × k numbers instead of n × k.


@dataclass(frozen=True)
class Coded:
    """n targets of k numbers. The target of example i is ``rows[codes[i]]``.

    Attributes:
        codes: [n] the code of each example.
        rows: [m, k] the target of each code.
    """

    codes: Int32[np.ndarray, " n"]
    rows: Float64[np.ndarray, "m k"]

    @classmethod
    def numbers(cls, values: Float64[np.ndarray, " n"]) -> Coded:
        """One number for each example."""
        return cls(np.arange(len(values), dtype=np.int32), values[:, None])

    @classmethod
    def one_hot(cls, classes: Int32[np.ndarray, " n"], count: int) -> Coded:
        """One-hot targets from the class of each example."""
        return cls(classes, np.eye(count))

    @classmethod
    def joined(cls, count: int, parts: Sequence[tuple[Int32[np.ndarray, " r"], Coded]]) -> Coded:
        """Targets of ``count`` examples from parts. Each part names its examples."""
        codes, before = np.empty(count, np.int32), 0
        for examples, part in parts:
            codes[examples] = part.codes + before
            before += len(part.rows)
        return cls(codes, np.concatenate([part.rows for _, part in parts]))

    def __len__(self) -> int:
        """The number of examples, n."""
        return len(self.codes)

    def part(self, rows: slice | NDArray[np.int64]) -> Coded:
        """Of these examples."""
        return Coded(self.codes[rows], self.rows)

    def each(self) -> Float64[np.ndarray, "n k"]:
        """The targets of all examples, [n, k]."""
        return self.rows[self.codes]
