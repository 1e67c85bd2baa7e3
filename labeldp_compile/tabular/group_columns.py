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

from labeldp_runtime import LabelError
from labeldp_runtime.columns import read_group_column
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


def group_array(path: Path, column: GroupColumn, values: Any, *, cells: bool) -> NDArray[Any]:
    """One column [n] of Arrow or numpy as the artifact takes it.

    ``cells`` says that text is that of a CSV file, where numbers are text, too. Raises DataError
    for a type that cannot hold the groups.
    """
    kind = {DOUBLE: "float64", INT64: "int64"}.get(group_type(column), "string")
    missing = column.outside()[0]
    if cells and not isinstance(missing, str):
        read = _integer if kind == "int64" else None
        return labels_of_cells(values, kind, missing, read)
    try:
        return read_group_column(values, kind, missing)
    except LabelError as error:
        reason = str(error).replace("as labels", "as groups")
        raise refused(path, f"the group column {column.name!r}: {reason}") from None


def _integer(cell: bytes) -> int | None:
    """An integer without a point or an exponent, if it has 64 bits at most."""
    number = int(cell) if _INTEGER.fullmatch(cell.strip(SPACE)) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
