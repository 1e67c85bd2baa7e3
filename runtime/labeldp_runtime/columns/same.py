"""Whether two columns are one: the same object, the same name, or the same place in memory.

Values are never compared: an answer that depends on them would tell about labels. So a copy without
a name is another column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BITS = 8  # of a byte
_DATA = 1  # the buffer behind that of the nulls


def are_one_column(one: Any, other: Any) -> bool:
    """Whether both are one column, as far as that can be told without a look at their values."""
    if one is other:
        return True
    name = _name(one)
    if name is not None and name == _name(other):
        return True
    mine, others = _arrays(one), _arrays(other)  # held, so that copies lie in different places
    places = list(map(_place, mine))
    return bool(places) and None not in places and places == list(map(_place, others))


def _name(values: Any) -> str | None:
    """What a Series of pandas or Polars is called; None without a text for a name."""
    if _library(values) not in ("pandas", "polars"):
        return None
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else None


def _arrays(values: Any) -> list[Any]:
    """The arrays of numpy or Arrow that hold a column, those without rows left out."""
    if isinstance(values, np.ndarray):
        return [values] if values.size else []
    read = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}
    library = _library(values)
    return [] if library is None else read[library](values)


def _library(values: Any) -> str | None:
    """Whose column this is; None of numpy and Python."""
    names = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((name for name in names if name in ("pandas", "polars", "pyarrow")), None)


def _of_pandas(values: Any) -> list[Any]:
    inner = getattr(values, "array", values)
    if hasattr(inner, "_pa_array"):  # what __arrow_array__ gives then is no copy
        return _of_arrow(inner.__arrow_array__())
    kind = getattr(values, "dtype", None)
    return _arrays(np.asarray(inner)) if isinstance(kind, np.dtype) else []


def _of_polars(values: Any) -> list[Any]:
    import polars as pl  # noqa: PLC0415  # loaded already, for it made the values

    if not isinstance(values, pl.Series) or values.dtype == pl.Object:
        return []
    try:
        # At the newest level types are those of Polars, and nothing is copied.
        level = pl.CompatLevel.newest()
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            values = values.to_physical()
        chunks = [chunk.to_arrow(compat_level=level) for chunk in values.get_chunks()]
    except Exception:  # a type that this pyarrow does not have, as of 128 bits
        return []
    return [part for chunk in chunks for part in _of_arrow(chunk)]


def _of_arrow(values: Any) -> list[Any]:
    chunks = values.chunks if hasattr(values, "chunks") else [values]
    return [chunk for chunk in chunks if hasattr(chunk, "buffers") and len(chunk)]


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
