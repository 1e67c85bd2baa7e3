"""From the cells of a column to the exact type of an artifact's input.

The container alone decides what is refused, never a label: a label that raised, or that changed how
another is read, would be disclosed. The type of an array or a column does not decide either:
libraries infer it from the values, so one label may change it. Labels of an unreadable type are
missing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.elements import INT64_MAX, INT64_MIN, Lookup, float64_of, int64_of, text_of
from labeldp_runtime.errors import LabelError

Missing = str | int | float | Lookup
"""The replacement of a missing label of text, integers or numbers. With a Lookup, texts are read as
its codes, and ``null`` is the missing one."""
Declared = Literal["text", "integers", "numbers", "objects", "other"]

_LAST = np.nextafter(2.0**63, 0)  # float64 inside int64
_NUMBERS: tuple[Declared, ...] = ("integers", "numbers", "objects")
_READ: dict[str, tuple[Declared, ...]] = {
    **{"string": ("text", "objects"), "int64": _NUMBERS, "float64": _NUMBERS}
}
_NUMPY_INTEGERS = frozenset(np.dtype(letter).type for letter in "bBhHiIlLqQ")


@dataclass(frozen=True)
class Cells:
    """A column of any library, taken apart.

    Attributes:
        declares: what its type says about the values; objects are read one by one.
        kind: the library's name of that type, for messages.
        values: [n] an array of numbers, or objects; of a dictionary its entries [m].
        nulls: [n] which values are null; None where the type says that by the value.
        codes: [n] of a dictionary, the place of each cell's entry; −1 for nulls.
    """

    declares: Declared
    kind: Any
    values: NDArray[Any] | Collection[Any] | Cells
    nulls: NDArray[np.bool_] | None = None
    codes: NDArray[Any] | None = None

    @classmethod
    def coded(cls, codes: NDArray[Any], entries: Cells, declares: Declared | None = None) -> Cells:
        """A dictionary, which declares what its entries do unless something else is said."""
        return cls(declares or entries.declares, entries.kind, entries, None, codes)

    def __len__(self) -> int:
        """The number of cells."""
        return len(self.values if self.codes is None else self.codes)


def fits(cells: Cells, element_type: str) -> bool:
    """Whether the type of a column says that it holds text (numbers), or nothing."""
    return cells.declares in _READ[element_type]


def wrong_type(element_type: str, cells: Cells) -> LabelError:
    """The error for a column of another type."""
    wanted = "text" if element_type == "string" else "numbers"
    return LabelError(f"expected {wanted} as labels, got {cells.kind}")


def unknown_type(kind: Any) -> LabelError:
    """The error for a column of a type that is not known here."""
    return LabelError(f"the type {kind} is not known here: convert the column to numbers or text")


def labels_of(cells: Cells, element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] as ``int64``, ``float64`` or ``string`` (object array of str, or codes).

    Columns of text where numbers are wanted, of numbers where text is, or of neither, are all
    ``missing``. Objects are each read on their own by the rules of ``elements``, which say the
    same. Numbers with a fraction go to the nearest integer (halves to even) where the labels are
    integers, and numbers beyond int64 or float64 to its ends. An array that is of the type already
    is answered as it is, not copied. ``missing`` stands in for nulls, for NaN, and for objects that
    are no number (no text). Never raises.
    """
    nothing = from_objects([None], element_type, missing)
    values = cells.values
    if not fits(cells, element_type):
        return np.repeat(nothing, len(cells))
    if isinstance(values, Cells):
        if isinstance(values.values, np.ndarray | Cells):
            own = labels_of(values, element_type, missing)
        else:
            own = from_objects(values.values, element_type, missing)
        entries = np.concatenate([own, nothing])
        return entries[cells.codes]  # of which the last is that of nulls
    if isinstance(values, np.ndarray):
        found = _numbers(values, element_type, missing)
    else:
        found = from_objects(values, element_type, missing)
    return found if cells.nulls is None else _with_missing(found, cells.nulls, missing)


def has_nulls(cells: Cells) -> bool:
    """Whether a column has typed nulls; NaN is none, and neither is what cannot be read."""
    return bool(_nulls(cells).any())


def _nulls(cells: Cells) -> NDArray[np.bool_]:
    """[n] which cells are typed nulls."""
    values = cells.values
    if isinstance(values, Cells):
        nulls: NDArray[np.bool_] = np.append(_nulls(values), True)[cells.codes]
        return nulls
    if cells.nulls is not None:
        return cells.nulls
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.zeros(len(values), bool)
    return np.array([value is None for value in values], bool)


def integers_of(cells: Cells, missing: int) -> NDArray[np.int64]:
    """Integers [n] as they are; ``missing`` for nulls, and for what is no int64.

    Raises LabelError for a column that declares another type.
    """
    if cells.declares not in ("integers", "objects"):
        raise LabelError(f"expected integers as labels, got {cells.kind}")
    values = cells.values
    if isinstance(values, Cells):
        entries = np.append(integers_of(values, missing), np.int64(missing))
        return entries[cells.codes]
    if not isinstance(values, np.ndarray):
        found = np.fromiter((_exact_integer(v, missing) for v in values), np.int64, len(values))
    elif values.dtype.kind == "u":
        known = values <= np.uint64(INT64_MAX)
        found = np.where(known, values, np.uint64(0)).astype(np.int64)
        found[~known] = missing
    else:
        found = values.astype(np.int64)
    if cells.nulls is not None:
        found[cells.nulls] = missing
    return found


def from_objects(values: Collection[Any], element_type: str, missing: Missing) -> NDArray[Any]:
    """Labels [n] of objects, each read on its own; never raises."""
    if isinstance(missing, Lookup):
        return missing.codes(values)
    if element_type == "string":
        labels = np.empty(len(values), dtype=object)
        labels[:] = [missing if text is None else text for text in map(text_of, values)]
        return labels
    if element_type == "float64":
        numbers = np.fromiter(map(float64_of, values), np.float64)
        return np.where(np.isnan(numbers), np.float64(missing), numbers)
    nearest = map(int64_of, values)
    return np.fromiter((missing if n is None else n for n in nearest), np.int64)


def _exact_integer(value: Any, missing: int) -> int:
    """One object that is an integer, and nothing near it."""
    kind = type(value)
    if issubclass(kind, int) and not issubclass(kind, bool):
        number = int.__int__(value)
    elif kind in _NUMPY_INTEGERS:
        number = int(value)
    else:
        return missing
    return number if INT64_MIN <= number <= INT64_MAX else missing


def _with_missing(labels: NDArray[Any], nulls: NDArray[np.bool_], missing: Missing) -> NDArray[Any]:
    """The labels with ``missing`` in the places of nulls [n]; they may be the caller's own array,
    which stays as it is. Whether there are any nulls makes no difference to what is done."""
    value = missing.null if isinstance(missing, Lookup) else missing
    return np.where(nulls, np.array(value, dtype=labels.dtype), labels)


def _numbers(array: NDArray[Any], element_type: str, missing: Any) -> NDArray[Any]:
    """The numbers of an array of integers, floats or booleans."""
    if array.dtype.kind in "bi" and element_type == "int64":
        return array.astype(np.int64, copy=False)
    # A bit pattern of NaN may signal, and numpy would warn of it.
    with np.errstate(all="ignore"):
        if element_type == "float64":
            numbers = array.astype(np.float64, copy=False)
            return _with_missing(numbers, np.isnan(numbers), missing)
        if array.dtype.kind == "f":
            return _rounded(array, int(missing))
        if array.dtype.kind == "u":
            array = np.minimum(array, np.array(INT64_MAX, dtype=np.uint64))
        return array.astype(np.int64)


def _rounded(array: NDArray[Any], missing: int) -> NDArray[np.int64]:
    # float64 holds every float16 and float32, and longdouble every int64.
    wide = array if array.dtype.itemsize > 8 else array.astype(np.float64, copy=False)
    last = _LAST if wide.itemsize == 8 else np.longdouble(2.0**63) - 1
    inside = np.fmin(np.fmax(wide, -(2.0**63)), last)  # which leave no NaN
    labels: NDArray[np.int64] = np.rint(inside).astype(np.int64)
    np.putmask(labels, wide > last, INT64_MAX)
    np.putmask(labels, np.isnan(wide), missing)
    return labels
