"""``labeldp init --groups``: the public groups of a table, for a spec."""

import re
from typing import Any

import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text

from labeldp_compile.cli.starter_spec import scalar
from labeldp_compile.column_names import is_among
from labeldp_compile.errors import InputError
from labeldp_compile.prior.asked_cells import of_one_kind
from labeldp_compile.tabular.reader import TableReader

MOST_VALUES = 1_000
_BANDS = re.compile(r"(.+?):((?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?,?)+)", re.DOTALL)


def public_groups(table: TableReader, text: str) -> dict[str, str]:
    """A column of the spec's ``groups``, from what was typed: NAME, or NAME:18,25,65 for bands.

    Reads the column if no bands are given. Reads no label. Raises InputError.
    """
    found = _BANDS.fullmatch(text)
    name = text if found is None else found[1]
    if is_among(name, table.label_columns):  # before it is read
        raise InputError(f"--groups {name}: this is the label, which cannot be its own group")
    table.require_column(name)
    if found is not None:
        edges = ", ".join(edge for edge in found[2].split(",") if edge)
        return {"column": name, "how": "bands", "listed": edges}
    return {"column": name, "how": "values", "listed": ", ".join(map(scalar, _values(table, name)))}


def _values(table: TableReader, name: str) -> list[Any]:
    seen: set[Any] = set()
    for batch in table.columns([name]):
        kind = batch.column(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise InputError(
                f"--groups {name}: has the type {kind}: give bands, as in {name}:18,25,65"
            )
        seen |= set(batch.column(name).unique().to_pylist())
        if len(seen) > MOST_VALUES + 1:
            raise InputError(
                f"--groups {name}: has more than {MOST_VALUES:,} values: give bands of a number, "
                f"as in {name}:18,25,65, or write groups with assign (docs/spec.md)"
            )
    values = sorted({value for value in of_one_kind(list(seen)) if value is not None})
    if not values:
        raise InputError(f"--groups {name}: has no values")
    return values
