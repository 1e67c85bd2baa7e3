"""Columns of pandas, Polars, Arrow and numpy as numpy arrays, without an import of these libraries.

What a column is, its own methods say: an Arrow dictionary decodes itself, and Series and Arrow
arrays turn themselves into numpy arrays. Nulls become None or NaN, which are no private label.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from labeldp_verify.errors import InputError
from numpy.typing import NDArray

_MATRIX = 2  # dimensions
_NULLS = ("NoneType", "NAType", "NaTType")  # the latter two of pandas


class PrivateLabelError(InputError, ValueError):
    """Labels, columns or artifact do not fit together; the message says what was expected.

    It is a ValueError, too, as scikit-learn expects. No message quotes a label.
    """


def array_of(column: Any) -> NDArray[Any]:
    """A column as an array [n], or [n, c] if it has several columns.

    Raises PrivateLabelError for what is not a column.
    """
    if "dictionary" in str(getattr(column, "type", "")) and hasattr(column, "cast"):  # Arrow
        column = column.cast(column.type.value_type)
    if hasattr(column, "to_numpy"):
        try:
            array = column.to_numpy(zero_copy_only=False)
        except TypeError:  # not Arrow
            array = column.to_numpy()
    else:
        try:
            array = np.asarray(column)
        except ValueError:
            raise PrivateLabelError("labels are one column; these rows differ in length") from None
    if array.dtype.kind == "O":
        array = _typed(array)
    if array.ndim not in (1, _MATRIX):
        raise PrivateLabelError(f"labels are one column, not an array of {array.ndim} dimensions")
    return np.asarray(array)


def named_columns(columns: Any, names: Sequence[str], what: str) -> list[NDArray[Any]]:
    """The columns [n] of these names, from a frame, a table or a mapping.

    Raises PrivateLabelError if one is missing. ``what`` says in the message what they are.
    """
    there = names_of(columns)
    if there is None:
        listed = ", ".join(map(repr, names))
        raise PrivateLabelError(f"{what} come from a frame with the columns {listed}, by name")
    for name in names:
        if list(there).count(name) != 1:
            how = "is missing" if name not in there else "occurs more than once"
            raise PrivateLabelError(f"the column {name!r} of {what} {how}")
    return [array_of(columns[name]) for name in names]


def names_of(columns: Any) -> Sequence[str] | None:
    """The names of the columns of a frame, a table or a mapping; None for anything else."""
    if isinstance(columns, Mapping):
        return list(columns)
    names = getattr(columns, "column_names", getattr(columns, "columns", None))
    return None if names is None or isinstance(columns, np.ndarray) else list(names)


def is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value [n] is null or NaN, which no private label is."""
    if column.dtype.kind == "O":
        nulls = (
            type(value).__name__ in _NULLS or (isinstance(value, float) and isnan(value))
            for value in column.tolist()
        )
        return np.fromiter(nulls, bool, len(column))
    return np.isnan(column) if column.dtype.kind in "fmM" else np.zeros(len(column), bool)


def indices_in(values: NDArray[Any], listed: Sequence[Any]) -> NDArray[np.int64]:
    """[n] the index of each value among those listed; −1 for all others. 3.0 is 3."""
    index: dict[Any, int] = {value: i for i, value in enumerate(listed)}

    def of(value: Any) -> int:
        return index.get(value, -1) if isinstance(value, Hashable) else -1

    if values.dtype.kind == "O":
        return np.fromiter(map(of, values.tolist()), np.int64, len(values))
    distinct, back = np.unique(values, return_inverse=True)
    return np.array([*map(of, distinct.tolist()), -1], np.int64)[back.reshape(-1)]


def _typed(objects: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all numbers as numbers; text stays as it is."""
    try:
        numbers = np.array(objects.tolist())
    except ValueError:  # rows of different lengths
        return objects
    return numbers if numbers.dtype.kind in "biuf" and numbers.shape == objects.shape else objects
