"""From Python and numpy values to the exact type of an artifact's label input.

What is refused is decided by the container, never by a label: a label that raised, or that changed
how another is read, would be disclosed. Nor by the type of an array or a column: libraries infer it
from the values, so that one label may decide it. Labels of a type that cannot be read are missing.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime import elements
from labeldp_runtime.errors import LabelError
from labeldp_runtime.lookup import Lookup

Missing = str | int | float | Lookup
"""What stands in for a label that is missing, of text, integers or numbers; with a Lookup texts
are read as its codes, and ``other`` is what is missing."""

_LAST = np.nextafter(2.0**63, 0)  # float64 inside int64
_KINDS = {"string": "UT", "int64": "biuf", "float64": "biuf"}  # of numpy's types
_BUFFER_FORMATS = "?bBhHiIlLqQnNefdg"  # of numbers, in the struct module's letters


def as_label_array(values: Any, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] as ``int64``, ``float64`` or ``string`` (object array of str, or codes).

    Arrays of text where numbers are wanted, of numbers where text is, or of neither, are all
    ``missing``. Of Python sequences and object arrays each object is read on its own by the rules
    of ``elements``, which say the same. Numbers with a fraction go to the nearest integer (halves
    to even) where the labels are integers, and numbers beyond int64 or float64 to its ends. An
    array that is of the type already is answered as it is, not copied. ``missing`` stands in for
    masked entries, for NaN, and for objects that are no number (no text). Raises LabelError for an
    array of another shape, and for what is no ordered container; never because of a label.
    """
    array = declared(values)
    if array is None:
        labels = from_objects(values, element_type, missing)
    elif array.dtype == object:
        labels = from_objects(array.tolist(), element_type, missing)
    elif array.dtype.kind not in _KINDS[element_type]:
        return all_missing(len(array), element_type, missing)
    elif element_type == "string":
        labels = from_objects(array.tolist(), element_type, missing)
    else:
        labels = _numbers(array, element_type, missing)
    if is_masked(values):
        return with_missing(labels, np.ma.getmaskarray(values), missing)
    return labels


def all_missing(count: int, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] of a column in which none can be read."""
    return np.repeat(from_objects([None], element_type, missing), count)


def refuse_type(values: Any, element_type: str) -> None:
    """Raise LabelError if an array of public values declares a type that is not wanted."""
    array = declared(values)
    if array is not None and array.dtype.kind not in "O" + _KINDS[element_type]:
        raise wrong_type(element_type, array.dtype)


def wrong_type(element_type: str, kind: Any) -> LabelError:
    """The error for a column of another type."""
    wanted = "text" if element_type == "string" else "numbers"
    return LabelError(f"expected {wanted} as labels, got {kind}")


def with_missing(labels: NDArray[Any], nulls: NDArray[np.bool_], missing: Missing) -> NDArray[Any]:
    """The labels with ``missing`` in the places of nulls [n]; they may be the caller's own array,
    which stays as it is. Whether there are any nulls makes no difference to what is done."""
    value = missing.other if isinstance(missing, Lookup) else missing
    return np.where(nulls, np.array(value, dtype=labels.dtype), labels)


def from_objects(values: Collection[Any], element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] of objects, each read on its own; never raises."""
    if isinstance(missing, Lookup):
        return missing.codes(values)
    if element_type == "string":
        text = elements.text_or(str(missing))
        labels = np.empty(len(values), dtype=object)
        labels[:] = [text(value) for value in values]
        return labels
    if element_type == "float64":
        return np.fromiter(map(elements.float64_or(float(missing)), values), np.float64)
    return np.fromiter(map(elements.int64_or(int(missing)), values), np.int64)


def is_masked(values: Any) -> bool:
    """Whether it is a masked array: not before somebody has loaded numpy.ma, which takes 20 ms."""
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


def declared(values: Any) -> NDArray[Any] | None:
    """The array [n] of a container that declares a type; None for a Python sequence."""
    if isinstance(values, list | tuple):
        return None
    if isinstance(values, str | bytes):
        raise LabelError(f"expected labels in an array or a list, got one {type(values).__name__}")
    if hasattr(values, "__array__"):
        shape = getattr(values, "shape", None)
        if shape is not None and len(shape) != 1:  # before anything is converted
            raise LabelError(f"expected labels of one dimension, got {len(shape)}")
        array = np.asarray(values)
        if array.ndim != 1:
            raise LabelError(f"expected labels of one dimension, got {array.ndim}")
        return array
    try:
        view = memoryview(values)
    except TypeError:
        pass
    else:
        return _of_buffer(view)
    if isinstance(values, Set):
        raise LabelError("expected labels in an order, got a set: give an array or a list")
    if not isinstance(values, Sequence):
        raise LabelError(f"expected labels in an array or a list, got {type(values).__name__}")
    return None


def _of_buffer(view: memoryview) -> NDArray[Any]:
    """The array [n] of a buffer of numbers: array.array, bytearray, memoryview."""
    if view.ndim != 1:
        raise LabelError(f"expected labels of one dimension, got {view.ndim}")
    if view.format.lstrip("@=<>!") not in tuple(_BUFFER_FORMATS):
        raise LabelError(f"expected labels in an array or a list, got a buffer of {view.format!r}")
    return np.asarray(view)


def _numbers(array: NDArray[Any], element_type: str, missing: Any) -> NDArray[Any]:
    """The numbers of an array of integers, floats or booleans."""
    if array.dtype.kind in "bi" and element_type == "int64":
        return array.astype(np.int64, copy=False)
    # A bit pattern of NaN may signal, and numpy would warn of it.
    with np.errstate(all="ignore"):
        if element_type == "float64":
            numbers = array.astype(np.float64, copy=False)
            return with_missing(numbers, np.isnan(numbers), missing)
        if array.dtype.kind == "f":
            return _rounded(array, int(missing))
        if array.dtype.kind == "u":
            array = np.minimum(array, np.array(elements.INT64_MAX, dtype=np.uint64))
        return array.astype(np.int64)


def _rounded(array: NDArray[Any], missing: int) -> NDArray[np.int64]:
    # float64 holds every float16 and float32, and longdouble every int64.
    wide = array if array.dtype.itemsize > 8 else array.astype(np.float64, copy=False)
    last = _LAST if wide.itemsize == 8 else np.longdouble(2.0**63) - 1
    inside = np.fmin(np.fmax(wide, -(2.0**63)), last)  # which leave no NaN
    labels: NDArray[np.int64] = np.rint(inside).astype(np.int64)
    np.putmask(labels, wide > last, elements.INT64_MAX)
    np.putmask(labels, np.isnan(wide), missing)
    return labels
