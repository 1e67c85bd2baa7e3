"""Columns in numpy arrays and Python sequences."""

import sys
from collections.abc import Sequence, Set
from operator import attrgetter
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.errors import IdError, LabelError
from labeldp_runtime.ids import ByteIds, Ids, IntegerIds, null_id
from labeldp_runtime.labels import Cells, Declared, unknown_type

WANTED = "ids must be integers of at most 64 bits, text, bytes or UUIDs"
# The order of a dict is that of its insertions, for every seed of the hashes.
_ORDERED: Any = (Sequence, type({}.keys()), type({}.values()))
_DECLARED: dict[str, Declared] = {
    **{"O": "objects", "U": "text", "T": "text"},
    **{"i": "integers", "u": "integers", "b": "numbers", "f": "numbers"},
    **dict.fromkeys("cmMS", "other"),
}
_BUFFER_FORMATS = "?bBhHiIlLqQnNefdg"  # of numbers, in the struct module's letters
_ONE_VALUE = (str, bytes, bytearray, memoryview)


def cells(values: Any) -> list[Cells]:
    """An array, or a sequence of objects, taken apart.

    Raises LabelError for an array of another shape, and for containers without an order.
    """
    array = _declared(values)
    if array is None:
        return [Cells("objects", None, values)]
    nulls = np.ma.getmaskarray(values) if _is_masked(values) else None
    declares = number_type(array.dtype)
    if declares in ("objects", "text"):
        return [Cells(declares, array.dtype, array.tolist(), nulls)]
    return [Cells(declares, array.dtype, array, nulls)]


def number_type(dtype: Any) -> Declared:
    """The kind of a numpy type. Raises LabelError for one that is not known here."""
    if dtype.kind not in _DECLARED:
        raise unknown_type(dtype)
    return _DECLARED[dtype.kind]


def like(values: Any, private: NDArray[Any] | Texts) -> NDArray[Any]:
    """Private labels [n] as an array of numpy, for all ``values``."""
    return private.array() if isinstance(private, Texts) else private


def arrays(values: Any) -> list[Any]:
    """The array that a column is; none for a sequence of Python."""
    return [values] if isinstance(values, np.ndarray) else []


def ids(values: Any) -> Ids:
    """Ids of an array, a sequence, or the keys or values of a dict [n].

    Raises IdError for containers without an order, such as sets: which id would name which label
    could change from one process to the next.
    """
    if _is_masked(values) and np.ma.getmaskarray(values).any():
        raise null_id()
    if not hasattr(values, "__array__"):
        if isinstance(values, _ONE_VALUE) or not isinstance(values, _ORDERED):
            raise IdError(
                "expected one id a label, in the order of the labels: "
                f"a list, an array or a column, not {type(values).__name__}"
            )
        return _of_objects(values if isinstance(values, list) else list(values))
    array = np.asarray(values)
    if array.ndim != 1:
        raise IdError(f"expected ids of one dimension, got {array.ndim}")
    kind = array.dtype.kind
    if kind in "iu":
        return integer_ids(array)
    if kind in "OTU":
        return _of_objects(array.tolist())
    if kind == "V" and array.dtype.names is None:
        width = array.dtype.itemsize
        return ByteIds.of_width(array.tobytes(), len(array), width)
    if kind == "S":
        raise IdError("numpy's S type drops zeros at the end of an id: use the V type, or objects")
    raise IdError(f"{WANTED}, not {array.dtype}")


def integer_ids(array: NDArray[Any]) -> IntegerIds:
    """Ids from an array of integers of any width."""
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:  # in either order of the bytes
        return IntegerIds(np.ascontiguousarray(array, dtype=np.uint64))
    return IntegerIds(np.ascontiguousarray(array, dtype=np.int64))


def _of_objects(values: list[Any]) -> Ids:
    if values and isinstance(values[0], str):
        try:
            joined = "".join(values)  # which refuses all but text
        except TypeError:
            pass
        else:
            return text_ids(joined, np.fromiter(map(len, values), np.int64, len(values)))
    types = set(map(type, values))
    if not types:
        return IntegerIds(np.empty(0, dtype=np.int64))
    if any(t is type(None) or t.__name__ in ("NAType", "NaTType") for t in types):
        raise null_id()
    if all(issubclass(t, bytes) for t in types):
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        return ByteIds.of("binary", b"".join(values), lengths)
    if all(issubclass(t, UUID) for t in types):
        return ByteIds.of_width(b"".join(map(attrgetter("bytes"), values)), len(values), 16)
    if all(issubclass(t, int | np.integer) and t is not bool for t in types):
        return _of_integers(values)
    if types <= {float, np.float64} and np.isnan(values).any():
        raise null_id()
    names = ", ".join(sorted(t.__name__ for t in types))
    raise IdError(f"{WANTED}, all of one type, not {names}")


def _of_integers(values: list[Any]) -> IntegerIds:
    least, most = min(values), max(values)
    if least >= -(2**63) and most < 2**63:
        return IntegerIds(np.array(values, dtype=np.int64))
    if least >= 0 and most < 2**64:
        return IntegerIds(np.array(values, dtype=np.uint64))
    raise IdError("the ids do not fit into int64, nor into uint64: use text")


def text_ids(joined: str, characters: NDArray[np.int64]) -> ByteIds:
    """Ids from one text and the number of characters of each."""
    if joined.isascii():
        return ByteIds.of("text", joined.encode(), characters)
    try:
        data = joined.encode()
    except UnicodeEncodeError:
        raise IdError("an id holds half a surrogate pair, which is not text: fix the id") from None
    # Characters end where no continuation byte (10xxxxxx) follows.
    first = np.flatnonzero((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80)
    edges = np.append(first, len(data))[np.concatenate([[0], np.cumsum(characters)])]
    return ByteIds.of("text", data, np.diff(edges))


def _is_masked(values: Any) -> bool:
    """Whether it is a masked array, without loading numpy.ma, which takes 20 ms."""
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


def _declared(values: Any) -> NDArray[Any] | None:
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
