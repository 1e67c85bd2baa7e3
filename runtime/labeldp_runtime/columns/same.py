"""Whether two columns are one: the same object, the same name, or the same place in memory.

Values are never compared: an answer that depends on them would tell about labels. So a copy without
a name is another column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BITS = 8  # of a byte


def are_one_column(one: Any, other: Any) -> bool:
    """Whether both are one column, as far as that can be told without a look at their values."""
    if one is other:
        return True
    name = _name(one)
    if name is not None and name == _name(other):
        return True
    places = _places(one)
    return bool(places) and places == _places(other)


def _name(values: Any) -> str | None:
    """What a Series of pandas or Polars is called; None without a text for a name."""
    if not _is_of(values, "pandas", "polars"):
        return None
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else None


def _places(values: Any) -> list[int]:
    """The addresses, in bits, at which the chunks of a column begin; none where it is not known."""
    if isinstance(values, np.ndarray):
        return [values.__array_interface__["data"][0] * _BITS] if values.size else []
    if _is_of(values, "pandas"):
        return _of_pandas(values)
    if _is_of(values, "polars"):
        return _of_polars(values)
    return _of_arrow(values) if _is_of(values, "pyarrow") else []


def _of_pandas(values: Any) -> list[int]:
    inner = getattr(values, "array", values)
    if hasattr(type(inner), "__arrow_array__") and hasattr(inner, "_pa_array"):
        return _of_arrow(inner.__arrow_array__())
    kind = getattr(values, "dtype", None)
    return _places(np.asarray(inner)) if isinstance(kind, np.dtype) else []


def _of_polars(values: Any) -> list[int]:
    import polars as pl  # noqa: PLC0415  # loaded already, for it made the values

    if not isinstance(values, pl.Series) or values.dtype == pl.Object:
        return []
    newest = pl.CompatLevel.newest()  # whose types are those of Polars: nothing is copied
    chunks = (chunk.to_arrow(compat_level=newest) for chunk in values.get_chunks())
    return [place for chunk in chunks for place in _of_arrow(chunk)]


def _of_arrow(values: Any) -> list[int]:
    """Of each chunk with rows, its first value, offset or code."""
    found = []
    for chunk in getattr(values, "chunks", None) or [values]:
        if not hasattr(chunk, "buffers") or not len(chunk):
            continue
        buffers = chunk.buffers()
        data = buffers[1] if len(buffers) > 1 else None
        if data is None:
            return []
        found.append(data.address * _BITS + chunk.offset * _width(chunk.type))
    return found


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


def _is_of(values: Any, *libraries: str) -> bool:
    return any(base.__module__.partition(".")[0] in libraries for base in type(values).__mro__)
