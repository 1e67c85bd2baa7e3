"""From Arrow columns to public groups, as the artifact takes them.

The rules are the runtime's: whatever is not listed, and every null, has the table of all other
rows. Cells of text (CSV) are read by the grammar of ``number_cells`` where bands need numbers;
where integers are listed, only an integer without a point or an exponent is one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime import LabelError
from labeldp_runtime.columns import read_group_column
from labeldp_runtime.columns.arrow import by_entries, distinct
from labeldp_verify.forms import GroupColumn
from labeldp_verify.graph import DOUBLE, INT64, group_type
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.number_cells import SPACE, labels_of_cells

_INTEGER = re.compile(rb"[+-]?[0-9]{1,19}")


ONLY = ""  # stands for the name of an only column


def renamed(
    columns: tuple[GroupColumn, ...], given: Mapping[str, str], labels: Collection[str]
) -> tuple[GroupColumn, ...]:
    """The same columns under the names that a table has for them.

    ``given`` has the table's name by the certificate's, or by ``ONLY``; ``labels`` are columns of
    true labels, which are no groups. Raises InputError.
    """
    if given and not columns:
        raise InputError("a group column is for an artifact with a table for each group")
    names = [column.name for column in columns]
    if len(names) == 1 and ONLY in given:
        given = {names[0]: given[ONLY]}
    if unknown := [name for name in given if name not in names]:
        way = "say which, as NAME=COLUMN" if unknown == [ONLY] else f"not {unknown[0]!r}"
        raise InputError(
            f"the artifact's columns of groups are {', '.join(map(repr, names))}: {way}"
        )
    found = tuple(replace(column, name=given.get(column.name, column.name)) for column in columns)
    if len({column.name for column in found}) != len(found):
        raise InputError("two columns of groups cannot be one column of the table")
    for column in found:
        if column.name in labels:
            raise InputError(
                f"{column.name!r} cannot be both the label and its group: groups are public"
            )
    return found


def group_arrays(
    path: Path, columns: tuple[GroupColumn, ...], batch: pa.RecordBatch, *, cells: bool
) -> dict[str, NDArray[Any]]:
    """Each column [n] by its name; raises DataError for a type that cannot hold the groups.

    ``cells`` says that text is that of a CSV file, where numbers are text, too.
    """
    return {
        column.name: group_array(path, column, batch.column(column.name), cells=cells)
        for column in columns
    }


def group_array(path: Path, column: GroupColumn, values: Any, *, cells: bool) -> NDArray[Any]:
    """One column [n] as the artifact takes it, of Arrow or numpy; errors as of ``group_arrays``."""
    element, missing = group_type(column), column.outside()[0]
    if cells and element in (INT64, DOUBLE):
        assert not isinstance(missing, str)
        if element == DOUBLE:
            return labels_of_cells(values, "float64", missing)
        return _integers_of_cells(values, int(missing))
    try:
        kind = {DOUBLE: "float64", INT64: "int64"}.get(element, "string")
        return read_group_column(values, kind, missing)
    except LabelError as error:
        reason = str(error).replace("as labels", "as groups")
        raise refused(path, f"the group column {column.name!r}: {reason}") from None


def _integers_of_cells(values: pa.Array, missing: int) -> NDArray[np.int64]:
    encoded = distinct(values)
    found = [_integer(cell, missing) for cell in encoded.dictionary.to_pylist()]
    return by_entries(encoded, np.array([*found, missing], dtype=np.int64))


def _integer(cell: bytes, missing: int) -> int:
    if _INTEGER.fullmatch(cell.strip(SPACE)) is None:
        return missing
    number = int(cell)
    return number if -(2**63) <= number < 2**63 else missing
