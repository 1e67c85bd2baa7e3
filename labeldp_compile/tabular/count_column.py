"""The column of whole counts in a histogram file: how many rows have each label."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_number, is_text
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, refused

MAX_TOTAL = 2**53  # rows that a histogram file may count
_WHOLE = r"^[0-9]{1,16}(\.0*)?$"


def check_count_type(path: Path, column: str, arrow_type: pa.DataType) -> None:
    """Raise DataError unless a column of this type can hold counts."""
    if not is_number(arrow_type) or pa.types.is_boolean(arrow_type):
        raise refused(path, f"counts: {column!r} has the type {arrow_type}, expected integers")


def count_array(path: Path, column: str, values: pa.Array) -> NDArray[np.int64]:
    """Counts [n] of any numeric type, or of text (CSV), exactly.

    Raises DataError for nulls, negative and fractional counts, and counts above 2^53. The message
    quotes no count: they are as sensitive as the labels.
    """
    if is_text(values.type):
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        trimmed = pc.utf8_trim_whitespace(values)
        cells = pc.if_else(pc.match_substring_regex(trimmed, _WHOLE), trimmed, None)
        values = pc.replace_substring_regex(cells, r"\..*", "")
    if values.null_count:
        raise _unusable(path, column)
    try:
        counts: NDArray[np.int64] = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise _unusable(path, column) from None
    if len(counts) and not 0 <= counts.min() <= counts.max() <= MAX_TOTAL:
        raise _unusable(path, column)
    return counts


def _unusable(path: Path, column: str) -> DataError:
    return refused(path, f"counts: {column!r} must hold a whole number from 0 to 2^53 in every row")
