"""Series of pandas: numpy, nullable, Arrow and categorical types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labeldp_runtime.columns import plain
from labeldp_runtime.errors import LabelError
from labeldp_runtime.ids import Ids
from labeldp_runtime.labels import as_label_array


def is_column(values: Any) -> bool:
    """Whether this is a Series."""
    return isinstance(values, pd.Series)


def aligned(labels: Any, ids: Any) -> bool:
    """Whether two Series have the same index."""
    return bool(labels.index.equals(ids.index))


def labels(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    """Labels [n]; NaN, None and pd.NA become ``missing``."""
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _of_categories(values, element_type, missing)
    if _in_arrow(kind):
        from labeldp_runtime.columns import arrow  # noqa: PLC0415

        return arrow.labels(_arrow_array(values), element_type, missing)
    if isinstance(kind, pd.StringDtype):
        return as_label_array(values.to_numpy(object, na_value=None), element_type, missing)
    if isinstance(kind, np.dtype):
        return as_label_array(values.to_numpy(), element_type, missing)
    null = values.isna().to_numpy()
    if not pd.api.types.is_numeric_dtype(kind):
        raise LabelError(f"a pandas column of type {kind} cannot hold the labels")
    zero = False if pd.api.types.is_bool_dtype(kind) else 0
    filled = values.to_numpy(dtype=kind.numpy_dtype, na_value=zero)
    array = as_label_array(filled, element_type, missing)
    return np.where(null, np.array(missing, dtype=array.dtype), array)


def like(values: Any, private: NDArray[Any]) -> Any:
    """Private labels [n] as a Series with the index and the name of ``values``."""
    numbers = private.dtype.kind in "if"
    kind = values.dtype if isinstance(values.dtype, pd.StringDtype) and not numbers else None
    data = private if numbers else private.tolist()
    return pd.Series(data, index=values.index, name=values.name, dtype=kind)


def ids(values: Any) -> Ids:
    """Ids [n]."""
    if values.isna().any():
        raise plain.null_id()
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return ids(values.astype(kind.categories.dtype))
    if _in_arrow(kind):
        from labeldp_runtime.columns import arrow  # noqa: PLC0415

        return arrow.ids(_arrow_array(values))
    if isinstance(kind, np.dtype):
        return plain.ids(values.to_numpy())
    if pd.api.types.is_integer_dtype(kind):
        return plain.ids(values.to_numpy(dtype=kind.numpy_dtype))
    return plain.ids(values.to_numpy(object))


def _in_arrow(kind: Any) -> bool:
    """Whether pyarrow holds the values (and is loaded, therefore)."""
    text = isinstance(kind, pd.StringDtype) and kind.storage == "pyarrow"
    return text or isinstance(kind, pd.ArrowDtype)


def _arrow_array(values: Any) -> Any:
    return values.array.__arrow_array__()


def _of_categories(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    entries = labels(pd.Series(values.cat.categories), element_type, missing)
    codes = values.cat.codes.to_numpy()
    if not len(entries):
        return as_label_array([None] * len(values), element_type, missing)
    array: NDArray[Any] = entries[np.maximum(codes, 0)]
    array[codes < 0] = missing
    return array
