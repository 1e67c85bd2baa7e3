"""Series of Polars."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.errors import IdError, LabelError
from labeldp_runtime.ids import Ids
from labeldp_runtime.labels import (
    Missing,
    all_missing,
    as_label_array,
    from_objects,
    with_missing,
    wrong_type,
)
from labeldp_runtime.lookup import Lookup

_TEXT = (pl.String, pl.Categorical, pl.Enum)


def is_column(values: Any) -> bool:
    """Whether this is a Series."""
    return isinstance(values, pl.Series)


_NUMPY_INTEGERS = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
)


def labels(values: Any, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n]; nulls, and all of a type that cannot be read, become ``missing``."""
    kind = values.dtype
    if not _fits(kind, element_type):
        return all_missing(len(values), element_type, missing)
    text = isinstance(kind, _TEXT)
    if text and isinstance(missing, Lookup):
        return _codes(values, missing)
    if text:
        return from_objects(values.cast(pl.String).to_list(), element_type, missing)
    if not (kind in _NUMPY_INTEGERS or kind.is_float() or kind == pl.Boolean):
        # Objects; decimals and integers of 128 bits, which no type of numpy holds.
        return from_objects(values.to_list(), element_type, missing)
    filled = values.fill_null(False if kind == pl.Boolean else 0).to_numpy()
    array = as_label_array(filled, element_type, missing)
    return with_missing(array, values.is_null().to_numpy(), missing)


def refuse_type(values: Any, element_type: str) -> None:
    """Raise LabelError for a type that does not fit."""
    if not _fits(values.dtype, element_type):
        raise wrong_type(element_type, values.dtype)


def _fits(kind: Any, element_type: str) -> bool:
    text, undeclared = isinstance(kind, _TEXT), kind in (pl.Null, pl.Object)
    number = kind.is_numeric() or kind == pl.Boolean
    return bool(undeclared or (text if element_type == "string" else number))


def like(values: Any, private: NDArray[Any] | Texts) -> Any:
    """Private labels [n] as a Series with the name of ``values``."""
    if isinstance(private, Texts):
        entries = pl.Series(values.name, private.entries.tolist(), dtype=pl.String)
        return entries.gather(private.codes)
    return pl.Series(values.name, private)


def _codes(values: Any, lookup: Lookup) -> NDArray[np.int64]:
    """Codes [n] of texts, or of categories, of which each that occurs is read once."""
    if values.dtype == pl.String:
        if "polars" not in lookup.kept:
            lookup.kept["polars"] = pl.Enum(lookup.texts)
        places = values.cast(lookup.kept["polars"], strict=False).to_physical()
        found: NDArray[np.int64] = places.cast(pl.Int64).fill_null(lookup.other).to_numpy()
        return found
    numbers = values.to_physical()
    own = pl.Series(np.flatnonzero(numbers.is_first_distinct().to_numpy()))
    codes = lookup.codes(values.gather(own).cast(pl.String).to_list())
    beyond = int(numbers.max() or 0) + 1  # stands for nulls
    of_number = np.full(beyond + 1, lookup.other, dtype=np.int64)
    of_number[numbers.gather(own).fill_null(beyond).to_numpy()] = codes
    in_order: NDArray[np.int64] = of_number[numbers.fill_null(beyond).to_numpy()]
    return in_order


def integers(values: Any, missing: int) -> NDArray[np.int64]:
    """Integers [n]; ``missing`` for nulls, and for what is beyond int64."""
    kind = values.dtype
    if not (kind.is_integer() or kind in (pl.Null, pl.Object)):
        raise LabelError(f"expected integers as labels, got {kind}")
    if kind not in _NUMPY_INTEGERS:  # objects, and integers of 128 bits
        return plain.integers(values.to_list(), missing)
    array = plain.integers(values.fill_null(0).to_numpy(), missing)
    array[values.is_null().to_numpy()] = missing
    return array


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
