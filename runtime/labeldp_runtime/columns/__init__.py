"""Columns of other libraries: labels and ids in, and the same kind of column out.

A library is imported only when one of its objects arrives: then it is already loaded.

The object, the name, or the place in memory says whether two columns are one. Values are never
compared: an answer that depends on them would disclose labels. So a copy without a name is another
column.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.errors import LabelError
from labeldp_runtime.ids import ByteIds, Ids, IntegerIds
from labeldp_runtime.labels import (
    Cells,
    Missing,
    fits,
    has_nulls,
    integers_of,
    labels_of,
    wrong_type,
)

_PLAIN = (np.ndarray, list, tuple)

Private = NDArray[Any] | Texts
Like = Callable[[Private], Any]


def read_labels(
    values: Any, element_type: str, missing: Missing, *, without_nulls: bool = False
) -> tuple[NDArray[Any], Like]:
    """Labels [n] as the artifact takes them, and how to make private labels like ``values``.

    ``missing`` replaces nulls, and all labels of a column whose type cannot hold them: libraries
    infer types from values, so refusing a type would disclose labels. Raises LabelError for what is
    not a column, and ``without_nulls`` (where it is public which labels are null) for nulls.
    """
    library = library_of(values) or plain
    parts: list[Cells] = library.cells(values)
    if without_nulls and any(map(has_nulls, parts)):
        raise LabelError(
            "has nulls, which this artifact leaves null (nulls: public): give only rows that have "
            "a label, or use labeldp randomize, which keeps the others as they are"
        )
    found = [labels_of(part, element_type, missing) for part in parts]
    return _joined(found), partial(library.like, values)


def read_group_column(values: Any, element_type: str, missing: Missing) -> NDArray[Any]:
    """Groups [n] as ``int64``, ``string`` or ``float64``; ``missing`` replaces nulls, and
    what is not an integer of 64 bits (not text, not a number).

    Raises LabelError for a column that declares another type.
    """
    parts: list[Cells] = (library_of(values) or plain).cells(values)
    if element_type == "int64":
        assert isinstance(missing, int)
        return _joined([integers_of(part, missing) for part in parts])
    if not fits(parts[0], element_type):
        raise wrong_type(element_type, parts[0])
    return _joined([labels_of(part, element_type, missing) for part in parts])


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_ids(values: Any) -> Ids:
    """Ids [n] of a column: integers of 64 bits, text, bytes or UUIDs, without nulls.

    Raises IdError for other types, for nulls, and for integers beyond 64 bits.
    """
    if isinstance(values, IntegerIds | ByteIds):
        return values
    return (library_of(values) or plain).ids(values)


def column_arrays(values: Any) -> list[Any]:
    """The arrays of numpy or Arrow that hold a column; those without rows are left out."""
    found: list[Any] = (library_of(values) or plain).arrays(values)
    return [array for array in found if len(array)]


def refuse_misaligned(labels: Any, others: Any, what: str, error: type[ValueError]) -> None:
    """Raise ``error`` if both are pandas Series whose indexes differ; ``what`` are the others."""
    if not _are_aligned(labels, others):
        raise error(f"labels and {what} have different indexes: take them from the same frame")


def gives_columns(values: Any) -> bool:
    """Whether this is a mapping, a frame or a table: columns by their names.

    Its type is asked: an attribute of a frame or a Series may be a column, or a label of its index.
    """
    return isinstance(values, Mapping) or hasattr(type(values), "columns")


def is_column(values: Any) -> bool:
    """Whether this is one column of any kind, or a sequence, and no container of named columns."""
    if library_of(values) is not None:
        return True
    return isinstance(values, (*_PLAIN, Collection)) and not gives_columns(values)


def column_named(columns: Any, name: str, what: str, error: type[ValueError]) -> Any:
    """A column by its name, from a mapping, a frame or a table. Raises ``error`` if it is missing.

    ``what`` names its contents in the message.
    """
    missing = error(f"there is no column {name!r} of {what}")
    if isinstance(columns, Mapping):  # which may make what it lacks
        known: Any = columns
    elif hasattr(type(columns), "column_names"):  # of pyarrow, whose errors say something else
        known = columns.column_names
    else:
        known = (name,)
    if name not in known:
        raise missing
    if known is not columns and list(known).count(name) > 1:
        raise error(f"there are several columns {name!r} of {what}")
    try:
        return columns[name]
    except Exception as reason:  # every library has its own
        raise missing from reason


def _are_aligned(labels: Any, others: Any) -> bool:
    library = library_of(labels)
    aligned = getattr(library, "aligned", None)
    return aligned is None or library is not library_of(others) or aligned(labels, others)


def library_of(values: Any) -> Any:
    """The module that reads columns of this type, or None for numpy and Python."""
    if type(values) in _PLAIN:
        return None
    for base in type(values).__mro__:
        name = base.__module__.partition(".")[0]
        if name == "pyarrow":
            from labeldp_runtime.columns import arrow as library  # noqa: PLC0415
        elif name == "pandas":
            from labeldp_runtime.columns import pandas as library  # type: ignore  # noqa: PLC0415
        elif name == "polars":
            from labeldp_runtime.columns import polars as library  # type: ignore  # noqa: PLC0415
        else:
            continue
        return library if library.is_column(values) else None
    return None


_BITS = 8  # of a byte
_DATA = 1  # the buffer behind that of the nulls


def are_one_column(one: Any, other: Any) -> bool:
    """Whether both are one column, as far as that can be told without a look at their values."""
    if one is other:
        return True
    name = _name(one)
    if name is not None and name == _name(other):
        return True
    mine, others = (
        column_arrays(one),
        column_arrays(other),
    )  # held, so that copies lie in different places
    places = list(map(_place, mine))
    return bool(places) and None not in places and places == list(map(_place, others))


def _name(values: Any) -> str | None:
    """The name of a Series of pandas or Polars; None without a text for a name."""
    name = None if library_of(values) is None else getattr(values, "name", None)
    return name if isinstance(name, str) and name else None


def _place(array: Any) -> int | None:
    """The address, in bits, of the first value, offset or code; None of a column of nulls."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0]) * _BITS
    buffers = array.buffers()
    if len(buffers) < _DATA + 1 or buffers[_DATA] is None:
        return None
    return int(buffers[_DATA].address) * _BITS + int(array.offset) * _width(array.type)


def _width(kind: Any) -> int:
    """Bits between the beginnings of two entries of the buffer; views are of 128."""
    import pyarrow as pa  # noqa: PLC0415  # loaded already

    if pa.types.is_dictionary(kind):
        kind = kind.index_type
    try:
        return int(kind.bit_width)
    except ValueError:
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        views = str(kind).endswith("_view")
        return 128 if views else 64 if large else 32
