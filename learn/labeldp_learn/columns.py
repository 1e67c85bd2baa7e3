"""Columns of pandas, Polars, Arrow and numpy as numpy arrays, without an import of these libraries.

What a column is, its own methods say: an Arrow dictionary decodes itself, and Series and Arrow
arrays turn themselves into numpy arrays. Nulls become None or NaN, which are no private label.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_learn.errors import PrivateLabelError

_MATRIX = 2  # dimensions
_NULLS = ("NoneType", "NAType", "NaTType")  # the latter two of pandas


def array_of(column: Any) -> NDArray[Any]:
    """A column as an array [n], or [n, c] if it has several columns.

    Raises PrivateLabelError for what is not a column.
    """
    if "dictionary" in str(getattr(column, "type", "")) and hasattr(column, "cast"):  # Arrow
        column = column.cast(column.type.value_type)
    if hasattr(column, "to_numpy"):
        try:
            found = column.to_numpy(zero_copy_only=False)
        except TypeError:  # not Arrow
            found = column.to_numpy()
    else:
        try:
            found = np.asarray(column)
        except ValueError:
            raise PrivateLabelError("labels are one column; these rows differ in length") from None
    if found.dtype.kind == "O":
        found = _typed(found)
    if found.ndim not in (1, _MATRIX):
        raise PrivateLabelError(f"labels are one column, not an array of {found.ndim} dimensions")
    return np.asarray(found)


def named_columns(columns: Any, names: Sequence[str], what: str) -> list[NDArray[Any]]:
    """The columns [n] of these names, from a frame, a table or a mapping.

    Raises PrivateLabelError if one is missing. ``what`` says in the message what they are.
    """
    known = names_of(columns)
    if known is None:
        listed = ", ".join(map(repr, names))
        raise PrivateLabelError(f"{what} come from a frame with the columns {listed}, by name")
    found = []
    for name in names:
        if list(known).count(name) != 1:
            how = "is missing" if name not in known else "occurs more than once"
            raise PrivateLabelError(f"the column {name!r} of {what} {how}")
        found.append(array_of(columns[name]))
    return found


def names_of(columns: Any) -> Sequence[str] | None:
    """The names of the columns of a frame, a table or a mapping; None for anything else."""
    if isinstance(columns, Mapping):
        return list(columns)
    names = getattr(columns, "column_names", getattr(columns, "columns", None))
    return None if names is None or isinstance(columns, np.ndarray) else list(names)


def is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value [n] is null or NaN, which no private label is."""
    if column.dtype.kind == "O":
        return np.array([_is_missing(value) for value in column.tolist()], bool)
    return np.isnan(column) if column.dtype.kind in "fmM" else np.zeros(len(column), bool)


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in _NULLS or (isinstance(value, float) and isnan(value))


def places_in(values: NDArray[Any], known: Sequence[Any]) -> NDArray[np.int64]:
    """[n] the place of each value among the known ones; −1 for all others. 3.0 is 3."""
    place: dict[Any, int] = {value: i for i, value in enumerate(known)}
    if values.dtype.kind == "O":
        given = values.tolist()
        try:
            return np.array([place.get(value, -1) for value in given], np.int64)
        except TypeError:  # a list or the like, which is no label
            return np.array([_place(place, value) for value in given], np.int64)
    distinct, back = np.unique(values, return_inverse=True)
    found = np.array([_place(place, value) for value in distinct.tolist()], np.int64)
    return found[back.reshape(-1)] if len(found) else np.zeros(0, np.int64)


def _place(place: Mapping[Any, int], value: Any) -> int:
    return place.get(value, -1) if isinstance(value, Hashable) else -1


def _typed(objects: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all numbers as numbers; text stays as it is."""
    try:
        numbers = np.array(objects.tolist())
    except ValueError:  # rows of different lengths
        return objects
    return numbers if numbers.dtype.kind in "biuf" and numbers.shape == objects.shape else objects
