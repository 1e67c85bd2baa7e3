"""Numbers in cells of text: one grammar for every row of every file.

    cell    = space* [+-] (digits [. digits*] | . digits) [e [+-] digits] space*
            | space* [+-] (inf | infinity) space*
            | space* (true | false) space*              which are 1 and 0
    space   = blank, tab, line feed, vertical tab, form feed or carriage return
    digits  = one or more of 0 to 9

Letters may be upper or lower case. Nothing else is a number: no empty cell, ``nan``, ``0x10``,
``1_000``, ``1,5``, or digits of other scripts. The value is that of the decimal number, however
long it is. In a table with decimal commas a comma stands for the point, and a point is no part of a
number.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from labeldp_runtime.columns.arrow import by_entries, distinct
from labeldp_runtime.labels import from_objects
from numpy.typing import NDArray

_NUMBER = re.compile(rb"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++))(?:[eE]([+-]?)([0-9]++))?")
SPACE = b" \t\n\v\f\r"
_WORDS = {b"true": 1.0, b"false": 0.0}
for _word in (b"inf", b"infinity"):
    _WORDS |= {_word: math.inf, b"+" + _word: math.inf, b"-" + _word: -math.inf}
_EXPONENT_DIGITS = 12  # a cell has too few digits to set against more


def labels_of_cells(
    values: pa.Array,
    element_type: str,
    missing: int | float,
    read: Callable[[bytes], Any] | None = None,
) -> NDArray[Any]:
    """Numbers [n], ``int64`` or ``float64``, of cells [n] of text; what is not a number is missing.

    ``read`` gives the number in one cell, or None; by default that of the grammar.
    """
    encoded = distinct(values)  # few cells differ, mostly: each is read once
    if read is None:
        read = _float_in if element_type == "float64" else number_in
    numbers = [read(cell) for cell in encoded.dictionary.to_pylist()]
    return by_entries(encoded, from_objects([*numbers, None], element_type, missing))


def with_points(cells: pa.Array) -> pa.Array:
    """Cells [n] of numbers with a decimal comma as cells with a point.

    A cell with a point, which may separate thousands there, is no number then.
    """
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    return pc.replace_substring(pc.replace_substring(cells, ".", ";"), ",", ".")


def number_in(cell: bytes) -> Decimal | float | None:
    """The number in one cell, exactly (its words as floats); None if it is not one."""
    cell = cell.strip(SPACE)
    found = _NUMBER.fullmatch(cell)
    if found is None:
        return _WORDS.get(cell.lower())
    exponent = (found[3] or b"").lstrip(b"0")[:_EXPONENT_DIGITS] or b"0"
    return Decimal((found[1] + b"e" + (found[2] or b"") + exponent).decode())


def _float_in(cell: bytes) -> float | None:
    cell = cell.strip(SPACE)
    return float(cell) if _NUMBER.fullmatch(cell) else _WORDS.get(cell.lower())
