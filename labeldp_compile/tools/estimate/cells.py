"""Groups of rows: the combinations of values of public columns."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.prior.histogram import table_indexes
from labeldp_compile.tabular.reader import TableReader

ALL_ROWS = "all rows"
Cell = tuple[Any, ...]
Cells = tuple[list[tuple[Cell, Any]], NDArray[np.int64]]
"""Cells, each with its rank, and the place [n] of each row's cell among them."""
_NAN = math.nan  # one object, so that all NaN are the same name


def name_of(cell: Cell) -> Any:
    """How a group is called: all rows, the value of its only column, or those of several."""
    return ALL_ROWS if not cell else cell[0] if len(cell) == 1 else cell


def in_words(value: Any) -> str:
    """A value of a column of groups as text."""
    return "null" if value is None else "NaN" if value is _NAN else str(value)


def texts_of(cell: Cell) -> list[str]:
    """The values of a cell as people see them; text that reads like another value has quotes."""
    return [
        json.dumps(value, ensure_ascii=False)
        if value in ("", "null", "NaN", ALL_ROWS) or (isinstance(value, str) and value[0] == '"')
        else in_words(value)
        for value in cell
    ]


def cells_of(
    reader: TableReader, groups: Groups, by: Sequence[str]
) -> Callable[[pa.RecordBatch], Cells]:
    """From a batch to its cells, each with its rank, and the place [n] of each row's cell.

    Without columns ``by``, the cells are those of an artifact's ``groups``, if it has any. Raises
    DataError for columns that cannot form groups.
    """
    if by or not groups.columns:
        return lambda batch: _combinations(reader.path, batch, by)
    # Each cell for itself, although several may share a table.
    each = Groups.each(*groups.columns)
    index = table_indexes(reader, each)

    def of_groups(batch: pa.RecordBatch) -> Cells:
        found, places = np.unique(index(batch), return_inverse=True)
        return [((each.name(number),), number) for number in found.tolist()], places

    return of_groups


def _combinations(path: Path, batch: pa.RecordBatch, by: Sequence[str]) -> Cells:
    """The combinations of values of some columns; one without values if there is no column."""
    cells: list[Cell] = [()]
    places = np.zeros(len(batch), np.int64)
    for name in by:
        values, here = distinct(path, name, batch.column(name))
        codes, places = np.unique(places * len(values) + here, return_inverse=True)
        pairs = (divmod(code, len(values)) for code in codes.tolist())
        cells = [(*cells[cell], values[value]) for cell, value in pairs]
    return [(cell, [rank(value) for value in cell]) for cell in cells], places


def distinct(path: Path, column: str, values: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, and the place [n] of each row's value among them.

    Raises DataError for a column that cannot form groups.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        # Dates beyond the year 9999, for example, are no values of Python.
        found = encoded.dictionary.to_pylist()
    except (pa.ArrowException, ArithmeticError, ValueError, LookupError):
        reason = f"cannot group by {column!r}, which has the type {values.type}"
        raise refused(path, reason) from None
    # All NaN have the same name.
    names = [_NAN if name != name else name for name in found]  # noqa: PLR0124
    places: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return names, places


def rank(value: Any) -> tuple[bool, bool, Any]:
    """For sorting values: numbers in order, then other values as text, then null."""
    number = isinstance(value, int | float) and value is not _NAN
    return value is None, not number, value if number else in_words(value)
