"""``labeldp init --groups``: the public groups of a table, as lines of a spec."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text

from labeldp_compile.column_names import is_among
from labeldp_compile.errors import InputError
from labeldp_compile.prior.asked_cells import of_one_kind
from labeldp_compile.starter_spec import scalar
from labeldp_compile.tabular.reader import TableReader

MOST_VALUES = 1_000
_BANDS = re.compile(r"(.+?):((?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?,?)+)", re.DOTALL)


def group_lines(table: TableReader, asked: Iterable[str]) -> list[str]:
    """The spec's ``groups`` for columns, as they were typed: NAME, or NAME:18,25,65 for bands.

    Reads the columns that have no bands, and no label. Raises InputError.
    """
    columns = [_column(table, text) for text in asked]
    comment = [
        "# Public groups of rows, each with a table and a prior of its own. They must be fixed",
        "# before any label is seen, and everybody who has the artifact can read them. The values",
        "# were read off the table: take out what is no group; what is not listed shares a table.",
        "# By keeping these lines you declare the groups public: no file can prove it.",
        "groups:",
    ]
    if len(columns) == 1:
        return [*comment, *(f"  {line}" for line in columns[0])]
    listed = [
        f"{'    - ' if i == 0 else '      '}{line}" for one in columns for i, line in enumerate(one)
    ]
    return [*comment, "  columns:", *listed]


def _column(table: TableReader, text: str) -> list[str]:
    found = _BANDS.fullmatch(text)
    name = text if found is None else found[1]
    if is_among(name, table.label_columns):  # before it is read
        raise InputError(f"--groups {name}: is the label, which cannot be its own group")
    table.require_column(name)
    if found is not None:
        edges = ", ".join(edge for edge in found[2].split(",") if edge)
        return [f"column: {scalar(found[1])}", f"bands: [{edges}]"]
    values = ", ".join(scalar(value) for value in _values(table, text))
    return [f"column: {scalar(text)}", f"values: [{values}]"]


def _values(table: TableReader, name: str) -> list[Any]:
    seen: set[Any] = set()
    for batch in table.columns([name]):
        kind = batch.column(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise InputError(f"--groups {name}: holds {kind}: name bands, as in {name}:18,25,65")
        seen |= set(batch.column(name).unique().to_pylist())
        if len(seen) > MOST_VALUES + 1:
            raise InputError(
                f"--groups {name}: has more than {MOST_VALUES:,} values: name bands of a number, "
                f"as in {name}:18,25,65, or write groups with assign (docs/spec.md)"
            )
    values = sorted({value for value in of_one_kind(list(seen)) if value is not None})
    if not values:
        raise InputError(f"--groups {name}: has no values")
    return values
