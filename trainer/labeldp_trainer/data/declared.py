"""Checks whether the type of a label column can hold labels at all, without reading a value.

A method that replaces unknown labels by a default would accept a column of the wrong type without a
message. Parquet files and archives declare types, which are public like column names. CSV cells
declare no type, and checking their values would disclose true labels.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from labeldp_compile.toolkit import plain_array
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

_UNKNOWN = "values of a type that labeldp does not know"
_WORDS = {  # by the type names of Arrow and numpy
    "booleans": r"bool",
    "numbers": r"u?int\d+|float\d*|halffloat|double|decimal\d+.*",
    "complex numbers": r"complex\d+",
    "text": r"(large_)?string(_view)?|str\d*",
    "bytes": r"((large|fixed_size)_)?binary(_view)?(\[.*)?|bytes\d*",
    "times": r"(date|time|duration|month_).*",
    "lists or structs": r"((large|fixed_size)_)?list.*|struct.*|map.*|.*union.*|void\d*",
    "nothing": r"null",
    _UNKNOWN: r"(?!object$).*",
}


def require_declared(
    values: Any, classes: tuple[int | str, ...] | None, source: str, column: str
) -> None:
    """Raise DataError if the declared type of a column can hold no number or none of the classes.

    Booleans are the numbers 0 and 1. A dictionary has the type of its values, an extension type
    that of its storage. A column without a declared type is accepted.
    """
    kind = declared(values)
    if kind is None or kind in _fitting(classes):
        return
    if classes is None:
        reason = "numbers are needed; use a column of numbers, or convert this one"
    else:
        reason = (
            f"none of the {len(classes):,} classes is of this type; list them in the type of "
            "the column (text in quotes, numbers without)"
        )
    raise DataError(f"{source}: {column!r} is declared to hold {kind}: {reason}")


def declared(values: Any) -> str | None:
    """What a column [n] holds according to its type, in a word. None if no type is declared.

    It is a word because the exact type may disclose labels: the width of numpy text is the length
    of the longest label.
    """
    if isinstance(values, Cells):
        return None
    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = values.type
        name = str(plain_array(pa.nulls(0, kind)).type)
    else:
        name = np.asarray(values).dtype.name
    return next((word for word, form in _WORDS.items() if re.fullmatch(form, name)), None)


def _fitting(classes: tuple[int | str, ...] | None) -> set[str]:
    if classes is None:
        return {"numbers", "booleans"}
    found = {"text" if isinstance(each, str) else "numbers" for each in classes}
    if {0, 1} & {*classes}:
        found.add("booleans")
    return found
