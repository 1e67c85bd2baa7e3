"""Whether a label column has a type that can hold a label at all: asked of its type, of no value.

A method that counts every odd label as a default would fit a column of the wrong type without a
word. Parquet files and archives declare types, which are public like the names of columns; cells
of CSV declare nothing, and asking their values would tell of true labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

_NUMPY = {
    "b": "booleans",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "c": "complex numbers",
    "U": "text",
    "S": "bytes",
    "M": "times",
    "m": "times",
    "V": "structs",
}


def _named(name: str) -> Callable[[Any], bool]:
    """The test for a type that only later versions of Arrow have."""
    return lambda kind: str(kind) == name


_ARROW: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "booleans": (pa.types.is_boolean,),
    "numbers": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "text": (pa.types.is_string, pa.types.is_large_string, _named("string_view")),
    "bytes": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        _named("binary_view"),
    ),
    "times": (pa.types.is_temporal,),
    "lists or structs": (pa.types.is_nested,),
    "nothing": (pa.types.is_null,),
}


def require_declared(
    values: Any, classes: tuple[int | str, ...] | None, source: str, column: str
) -> None:
    """Raise DataError if a column's declared type can hold no number, or none of the classes.

    Booleans are the numbers 0 and 1. A dictionary has the type of its values, an extension that of
    its storage. What declares no type holds anything.
    """
    kind = declared(values)
    if kind is None or kind in _fitting(classes):
        return
    if classes is None:
        reason = "no numbers: name a column of numbers, or give this one their type"
    else:
        reason = (
            f"none of the {len(classes)} classes: list them in the type that the column has (text "
            "in quotes, numbers without)"
        )
    raise DataError(f"{source}: {column!r} is declared to hold {kind}, so that it has {reason}")


def declared(values: Any) -> str | None:
    """What a column [n] holds by its type, in a word; None if it declares none.

    A word, and not the type: the width of numpy's text is the length of the longest label.
    """
    if isinstance(values, Cells):
        return None
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _of_arrow(values.type)
    return _NUMPY.get(np.asarray(values).dtype.kind)


def _of_arrow(kind: Any) -> str | None:
    if isinstance(kind, pa.BaseExtensionType):
        return _of_arrow(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    for word, tests in _ARROW.items():
        if any(test(kind) for test in tests):
            return word
    return None


def _fitting(classes: tuple[int | str, ...] | None) -> set[str]:
    if classes is None:
        return {"numbers", "booleans"}
    found = {"text" if isinstance(each, str) else "numbers" for each in classes}
    if not {0, 1}.isdisjoint(classes):
        found.add("booleans")
    return found
