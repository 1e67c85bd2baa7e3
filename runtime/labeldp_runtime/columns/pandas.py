"""Series, indexes and arrays of pandas: numpy, nullable, Arrow and categorical types."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.ids import Ids, null_id
from labeldp_runtime.labels import Cells, unknown_type


def is_column(values: Any) -> bool:
    """Whether this is a Series, or what it can be made of without a look at the values."""
    return isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray)


def aligned(labels: Any, ids: Any) -> bool:
    """Whether two Series have the same index; other columns have none."""
    both = isinstance(labels, pd.Series) and isinstance(ids, pd.Series)
    return not both or bool(labels.index.equals(ids.index))


def cells(values: Any) -> list[Cells]:
    """A Series, or what one can be made of, taken apart.

    pandas may have inferred the type from the values, so it only decides how they are read.
    """
    if isinstance(values, pd.MultiIndex):  # of tuples, by the values
        return [Cells("other", "an index of several levels", [None] * len(values))]
    values = _series(values)
    kind = values.dtype
    if _in_arrow(kind):
        return _arrow().cells(_arrow_array(values))
    if isinstance(kind, np.dtype | pd.SparseDtype):
        return plain.cells(np.asarray(values))
    return [_of_extension(values)]


def _of_extension(values: Any) -> Cells:
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        # Its type depends on the labels that occur, so each is read on its own.
        found = cells(pd.Series(kind.categories))[0]
        own = Cells(found.declares, found.kind, kind.categories.tolist())
        return Cells.coded(values.cat.codes.to_numpy(), own, "objects")
    if isinstance(kind, pd.StringDtype):
        return Cells("text", kind, values.to_numpy(object, na_value=None).tolist())
    if isinstance(kind, pd.DatetimeTZDtype | pd.PeriodDtype | pd.IntervalDtype):
        return Cells("other", kind, [None] * len(values))
    number = getattr(kind, "numpy_dtype", None)  # of a nullable type of numbers
    if number is None or number.kind not in "biuf":
        raise unknown_type(kind)
    filled, nulls = values.to_numpy(number, na_value=0), values.isna().to_numpy()
    return Cells(plain.number_type(number), kind, filled, nulls)


def like(values: Any, private: NDArray[Any] | Texts) -> Any:
    """Private labels [n] as a Series with the index and the name of ``values``, if it is one.

    Text gets the default type of pandas, for labels of any type.
    """
    if isinstance(private, Texts):
        if not isinstance(values, pd.Series):
            return private.array()
        entries = pd.Series(private.entries.tolist()).array  # of text, or objects
        return pd.Series(entries.take(private.codes), index=values.index, name=values.name)
    if not isinstance(values, pd.Series):
        return private
    return pd.Series(private, index=values.index, name=values.name)


def ids(values: Any) -> Ids:
    """Ids [n]."""
    values = _series(values)
    if values.isna().any():
        raise null_id()
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return ids(values.astype(kind.categories.dtype))
    if _in_arrow(kind):
        return _arrow().ids(_arrow_array(values))
    if isinstance(kind, np.dtype):
        return plain.ids(values.to_numpy())
    if pd.api.types.is_integer_dtype(kind):
        return plain.ids(values.to_numpy(dtype=kind.numpy_dtype))
    return plain.ids(values.to_numpy(object))


def _in_arrow(kind: Any) -> bool:
    """Whether pyarrow holds the values (and is loaded, therefore)."""
    text = isinstance(kind, pd.StringDtype) and kind.storage == "pyarrow"
    return text or isinstance(kind, pd.ArrowDtype)


def _arrow() -> Any:
    """The reader of columns of pyarrow, which is loaded where there are any."""
    from labeldp_runtime.columns import arrow  # noqa: PLC0415

    return arrow


def _arrow_array(values: Any) -> Any:
    return values.array.__arrow_array__()


def _series(values: Any) -> Any:
    return values if isinstance(values, pd.Series) else pd.Series(values, copy=False)


def arrays(values: Any) -> list[Any]:
    """The arrays of numpy or Arrow that hold a column."""
    inner = getattr(values, "array", values)
    if hasattr(inner, "_pa_array"):  # what __arrow_array__ gives then is no copy
        return _arrow().arrays(inner.__arrow_array__())
    kind = getattr(values, "dtype", None)
    return [np.asarray(inner)] if isinstance(kind, np.dtype) else []
