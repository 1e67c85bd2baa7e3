"""Whether two columns are one: the same object, the same name, or the same place in memory.

Values are never compared: an answer that depends on them would disclose labels. So a copy without a
name is another column.
"""

from typing import Any

import numpy as np

from labeldp_runtime.columns import column_arrays, library_of

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
    """What a Series of pandas or Polars is called; None without a text for a name."""
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
