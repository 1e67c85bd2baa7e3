"""The public cells of a spec: those of its columns, or those that a public file assigns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_verify.forms import MAX_CELLS, Category, GroupColumn, Groups, check_groups

from labeldp_compile.errors import refused
from labeldp_compile.spec import Spec
from labeldp_compile.spec.load import refuse_label_data
from labeldp_compile.spec.model import Assign

if TYPE_CHECKING:
    import pyarrow as pa


ONE_TABLE = Groups()
"""All rows are one cell with one table."""


def group_cells(spec: Spec, directory: Path) -> Groups:
    """A table for each cell that a spec names; its paths are relative to ``directory``.

    Without public columns, all rows are one cell.

    Raises DataError if the file of assignments cannot be used, or is the label's data.
    """
    asked = spec.groups
    if asked is None:
        return ONE_TABLE
    if asked.assign is None:
        return Groups.each(*asked.to_columns())
    path = directory / asked.assign.file
    why = "groups are public, so groups.assign needs a file without labels"
    refuse_label_data(spec, directory, path, why)
    found = _assignments(path, asked.assign)
    if not found:
        raise refused(path, "assigns no groups")
    keys = sorted(found)  # so that the order of the file's rows decides nothing
    column = GroupColumn(str(asked.column), tuple(keys))
    groups = number_tables((column,), [found[key] for key in keys])
    try:
        check_groups(groups)
    except ValueError as error:
        raise refused(path, str(error)) from None
    return groups


def number_tables(columns: tuple[GroupColumn, ...], group_of_cell: Iterable[Any]) -> Groups:
    """Cells [C] of one group share a table; tables are numbered in the order of the groups.

    Cells whose group is None use the table of all other rows.
    """
    listed = list(group_of_cell)
    numbers: dict[Any, int] = {}
    for group in listed:
        if group is not None:
            numbers.setdefault(group, len(numbers))
    own = len(numbers)
    return Groups(columns, tuple(own if g is None else numbers[g] for g in listed), own)


def _assignments(path: Path, assign: Assign) -> dict[Category, Category]:
    """Each key with its group; raises DataError for a key with two groups."""
    # Arrow is needed only if a file assigns the groups.
    from labeldp_compile.tabular.reader import read_columns  # noqa: PLC0415

    known: dict[Category, Category] = {}
    keys: list[Any] = []
    groups: list[Any] = []
    for batch in read_columns(path, [assign.key, assign.group], assign.form, [assign.key]):
        keys += _values(path, assign.key, batch.column(assign.key))
        groups += _values(path, assign.group, batch.column(assign.group))
        if len(keys) > 4 * MAX_CELLS:
            raise refused(
                path, f"has more than {4 * MAX_CELLS:,} rows; at most {MAX_CELLS:,} keys fit"
            )
    for key, group in zip(of_one_kind(keys), of_one_kind(groups), strict=True):
        if key is None or group is None:
            continue  # such rows use the table of all others
        if known.setdefault(key, group) != group:
            raise refused(path, f"assigns one value of {assign.key!r} to two groups")
    return known


def _values(path: Path, name: str, values: pa.Array) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415
    from labeldp_runtime.columns.arrow import is_text  # noqa: PLC0415

    from labeldp_compile.tabular.columns import value_type  # noqa: PLC0415

    kind = value_type(values.type)
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise refused(path, f"{name!r} has the type {kind}, expected text or integers")
    return values.to_pylist()


def of_one_kind(values: list[Any]) -> list[Any]:
    """Cells of a CSV file are integers if all of them are written as integers, else text."""
    values = [None if value == "" else value for value in values]
    text = [value for value in values if isinstance(value, str)]
    if text and all(_is_written(value) for value in text):
        return [None if value is None else int(value) for value in values]
    return values


def _is_written(cell: str) -> bool:
    digits = cell.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and str(int(cell)) == cell
