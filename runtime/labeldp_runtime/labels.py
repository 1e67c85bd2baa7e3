"""From numpy values to the exact type of an artifact's label input, never failing on a value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.errors import LabelError

_BELOW_2_63 = np.nextafter(2.0**63, 0)
_INT64_MAX = 2**63 - 1


def as_label_array(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    """Labels [n] as ``int64``, ``float64`` or ``string`` (object array of str).

    ``missing`` stands in for None (and for NaN where the labels are integers or text). Numbers
    with a fraction are rounded to the nearest integer (halves to even) where the labels are
    integers. Raises LabelError for another shape or for a type that cannot hold the labels.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise LabelError(f"expected labels of one dimension, got {array.ndim}")
    if element_type == "string":
        return _strings(array, str(missing))
    if array.size == 0:
        return np.empty(0, dtype=element_type)
    if array.dtype == object:
        array = _from_objects(array)
    if array.dtype.kind not in "biuf":
        raise LabelError(f"expected numbers as labels, got {array.dtype}")
    if element_type == "float64":
        return array.astype(np.float64)
    return _integers(array, int(missing))


def _strings(array: NDArray[Any], missing: str) -> NDArray[Any]:
    if array.dtype.kind not in "OU" and array.size:
        raise LabelError(f"expected text as labels, got {array.dtype}")
    result = array.astype(object)
    gaps = np.fromiter((not isinstance(v, str) for v in result), dtype=bool, count=len(result))
    result[gaps] = missing
    return result


def _from_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Python numbers with None among them, as float64 with NaN (integers stay exact)."""
    gaps = np.fromiter((v is None for v in array), dtype=bool, count=len(array))
    try:
        if not gaps.any() and all(isinstance(v, int) for v in array):
            return np.array([min(max(v, -(2**63)), _INT64_MAX) for v in array], dtype=np.int64)
        return np.where(gaps, np.nan, array).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise LabelError("expected numbers as labels") from error


def _integers(array: NDArray[Any], missing: int) -> NDArray[np.int64]:
    if array.dtype == np.uint64:
        capped: NDArray[np.int64] = np.minimum(array, np.uint64(_INT64_MAX)).astype(np.int64)
        return capped
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    gaps = np.isnan(array)
    whole = np.rint(np.where(gaps, 0.0, array.astype(np.float64)))
    integers = np.clip(whole, -(2.0**63), _BELOW_2_63).astype(np.int64)
    return np.where(gaps, np.int64(missing), integers)
