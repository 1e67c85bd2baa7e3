"""Series of Polars."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from labeldp_runtime.columns import plain
from labeldp_runtime.errors import IdError, LabelError
from labeldp_runtime.ids import Ids
from labeldp_runtime.labels import as_label_array

_TEXT = (pl.String, pl.Categorical, pl.Enum)


def is_column(values: Any) -> bool:
    """Whether this is a Series."""
    return isinstance(values, pl.Series)


def labels(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    """Labels [n]; nulls become ``missing``."""
    kind = values.dtype
    if kind == pl.Null:
        return as_label_array([None] * len(values), element_type, missing)
    if element_type == "string":
        if not isinstance(kind, _TEXT):
            raise LabelError(f"expected text as labels, got {kind}")
        texts = np.array(values.cast(pl.String).to_list(), dtype=object)
        return as_label_array(texts, "string", missing)
    if kind == pl.Boolean:
        values = values.cast(pl.Int8)
    elif kind.is_decimal() or (kind.is_integer() and kind not in _NUMPY_INTEGERS):
        values = values.cast(pl.Float64)
    elif not kind.is_numeric():
        raise LabelError(f"expected numbers as labels, got {kind}")
    array = as_label_array(values.fill_null(0).to_numpy(), element_type, missing)
    if values.null_count():
        null = values.is_null().to_numpy()
        array = np.where(null, np.array(missing, dtype=array.dtype), array)
    return array


_NUMPY_INTEGERS = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
)


def like(values: Any, private: NDArray[Any]) -> Any:
    """Private labels [n] as a Series with the name of ``values``."""
    if private.dtype.kind in "if":
        return pl.Series(values.name, private)
    return pl.Series(values.name, private.tolist(), dtype=pl.String)


def ids(values: Any) -> Ids:
    """Ids [n]."""
    if values.null_count():
        raise plain.null_id()
    kind = values.dtype
    if kind in _NUMPY_INTEGERS:
        return plain.ids(values.to_numpy())
    if isinstance(kind, _TEXT):
        texts = values.cast(pl.String)
        joined = texts.str.join("").item() if len(texts) else ""
        return plain.text_ids(joined, texts.str.len_chars().cast(pl.Int64).to_numpy())
    if kind in (pl.Binary, pl.Object):
        return plain.ids(values.to_list())
    if kind == pl.Null and not len(values):
        return plain.ids([])
    raise IdError(f"{plain.WANTED}, not {kind}")
