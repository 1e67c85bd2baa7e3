"""Series, indexes and arrays of pandas: numpy, nullable, Arrow and categorical types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.errors import LabelError
from labeldp_runtime.ids import Ids
from labeldp_runtime.labels import (
    Missing,
    all_missing,
    as_label_array,
    from_objects,
    with_missing,
    wrong_type,
)


def is_column(values: Any) -> bool:
    """Whether this is a Series, or what it can be made of without a look at the values."""
    return isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray)


def aligned(labels: Any, ids: Any) -> bool:
    """Whether two Series have the same index; other columns have none."""
    both = isinstance(labels, pd.Series) and isinstance(ids, pd.Series)
    return not both or bool(labels.index.equals(ids.index))


def labels(values: Any, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n]; NaN, None and pd.NA become ``missing``, and so does all that cannot be read.

    Any type may have been found out by pandas from the values themselves, and decides nothing but
    how they are read.
    """
    if isinstance(values, pd.MultiIndex):  # of tuples, by the values
        return all_missing(len(values), element_type, missing)
    values = _series(values)
    kind = values.dtype
    if _in_arrow(kind):
        from labeldp_runtime.columns import arrow  # noqa: PLC0415

        return arrow.labels(_arrow_array(values), element_type, missing)
    if isinstance(kind, pd.CategoricalDtype):
        # The code of nulls is −1, which takes the last entry.
        entries = from_objects([*kind.categories.tolist(), None], element_type, missing)
        found: NDArray[Any] = entries[values.cat.codes.to_numpy()]
    elif isinstance(kind, pd.StringDtype):
        found = from_objects(values.to_numpy(object, na_value=None), element_type, missing)
    elif isinstance(kind, np.dtype | pd.SparseDtype):
        found = as_label_array(np.asarray(values), element_type, missing)
    else:
        found = _of_nullable(values, element_type, missing)
    return found


def _of_nullable(values: Any, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] of an extension type: one of numbers, with a mask, or one that cannot be read."""
    number = getattr(values.dtype, "numpy_dtype", None)
    if number is None or number.kind not in "biuf":
        return all_missing(len(values), element_type, missing)
    array = as_label_array(values.to_numpy(number, na_value=0), element_type, missing)
    return with_missing(array, values.isna().to_numpy(), missing)


def refuse_type(values: Any, element_type: str) -> None:
    """Raise LabelError for a type that does not fit; objects and categories have none."""
    if isinstance(values, pd.MultiIndex):
        raise LabelError("expected labels of one dimension, got an index of several levels")
    kind = _series(values).dtype
    if isinstance(kind, pd.CategoricalDtype) or kind == np.dtype(object):
        return
    if _in_arrow(kind):
        from labeldp_runtime.columns import arrow  # noqa: PLC0415

        arrow.refuse_type(_arrow_array(_series(values)), element_type)
        return
    kind = kind.subtype if isinstance(kind, pd.SparseDtype) else kind
    number = getattr(kind, "numpy_dtype", kind)
    is_text = isinstance(kind, pd.StringDtype)
    if is_text if element_type == "string" else getattr(number, "kind", "") in "biuf":
        return
    raise wrong_type(element_type, kind)


def like(values: Any, private: NDArray[Any] | Texts) -> Any:
    """Private labels [n] as a Series with the index and the name of ``values``, if it is one.

    Text is of the type that pandas gives it, whatever that of the labels is.
    """
    if isinstance(private, Texts):
        if not isinstance(values, pd.Series):
            return private.array()
        entries = pd.Series(private.entries.tolist()).array  # of text, or objects
        return pd.Series(entries.take(private.codes), index=values.index, name=values.name)
    if not isinstance(values, pd.Series):
        return private
    return pd.Series(private, index=values.index, name=values.name)


def integers(values: Any, missing: int) -> NDArray[np.int64]:
    """Integers [n]; ``missing`` for nulls, and for what is beyond int64."""
    if isinstance(values, pd.MultiIndex):
        raise LabelError("expected labels of one dimension, got an index of several levels")
    values = _series(values)
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        # The code of nulls is −1, which takes the last entry.
        entries = np.append(integers(pd.Series(kind.categories), missing), np.int64(missing))
        found: NDArray[np.int64] = entries[values.cat.codes.to_numpy()]
        return found
    if _in_arrow(kind):
        from labeldp_runtime.columns import arrow  # noqa: PLC0415

        return arrow.integers(_arrow_array(values), missing)
    if isinstance(kind, np.dtype):
        return plain.integers(values.to_numpy(), missing)
    number = getattr(kind, "numpy_dtype", None)
    if number is None or number.kind not in "iu":
        raise LabelError(f"expected integers as labels, got {kind}")
    array = plain.integers(values.to_numpy(number, na_value=0), missing)
    array[values.isna().to_numpy()] = missing
    return array


def ids(values: Any) -> Ids:
    """Ids [n]."""
    values = _series(values)
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


def _series(values: Any) -> Any:
    return values if isinstance(values, pd.Series) else pd.Series(values, copy=False)
