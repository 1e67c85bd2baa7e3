"""From numpy values to the exact type of an artifact's label input, never failing on a value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.errors import LabelError

_BELOW_2_63 = np.nextafter(2.0**63, 0)
_INT64_MAX = 2**63 - 1


def as_label_array(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    """Labels [n] as ``int64``, ``float64`` or ``string`` (object array of str).

    ``missing`` stands in for None, masked entries, and whatever in a mixed list is no number (no
    text); and for NaN where the labels are integers. Numbers with a fraction are rounded to the
    nearest integer (halves to even) where the labels are integers, and numbers beyond int64 or
    float64 become its ends. Raises LabelError for another shape, or for an array of a type that
    cannot hold the labels; never because of one value.
    """
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.asarray(values)
    if array.ndim != 1:
        raise LabelError(f"expected labels of one dimension, got {array.ndim}")
    if array.size == 0:
        return np.empty(0, dtype=object if element_type == "string" else element_type)
    if element_type == "string":
        labels = _strings(array, str(missing))
    elif array.dtype == object:
        labels = _from_objects(array, element_type, missing)
    elif array.dtype.kind not in "biuf":
        raise LabelError(f"expected numbers as labels, got {array.dtype}")
    elif element_type == "float64":
        with np.errstate(over="ignore"):
            labels = array.astype(np.float64)
    else:
        labels = _integers(array, int(missing))
    return labels if mask is None else np.where(mask, np.array(missing, labels.dtype), labels)


def _strings(array: NDArray[Any], missing: str) -> NDArray[Any]:
    if array.dtype.kind not in "OUT":
        raise LabelError(f"expected text as labels, got {array.dtype}")
    if array.dtype == object and not any(isinstance(v, str) or v is None for v in array):
        raise LabelError("expected text as labels")
    texts = [_valid(v) if isinstance(v, str) else missing for v in array.astype(object)]
    return np.array(texts, dtype=object)


def _valid(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, replaced."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _from_objects(
    array: NDArray[Any], element_type: str, missing: str | int | float
) -> NDArray[Any]:
    """Python numbers, one by one; None, text and other things count as missing."""
    if all(isinstance(v, str) for v in array):
        raise LabelError("expected numbers as labels, got text")
    convert = _float_or_none if element_type == "float64" else _int64_or_none
    numbers = [convert(v) for v in array]
    return np.array([missing if v is None else v for v in numbers], dtype=element_type)


def _float_or_none(value: Any) -> float | None:
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def _int64_or_none(value: Any) -> int | None:
    if isinstance(value, int | np.integer):
        return min(max(int(value), -(2**63)), _INT64_MAX)
    number = _float_or_none(value)
    if number is None or math.isnan(number):
        return None
    if math.isinf(number):
        return _INT64_MAX if number > 0 else -(2**63)
    return min(max(round(number), -(2**63)), _INT64_MAX)


def _integers(array: NDArray[Any], missing: int) -> NDArray[np.int64]:
    if array.dtype == np.uint64:
        capped: NDArray[np.int64] = np.minimum(array, np.uint64(_INT64_MAX)).astype(np.int64)
        return capped
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float64)
    gaps = np.isnan(numbers)
    whole = np.clip(np.rint(np.where(gaps, 0.0, numbers)), -(2.0**63), _BELOW_2_63)
    return np.where(gaps, np.int64(missing), whole.astype(np.int64))
