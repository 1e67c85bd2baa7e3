"""How often each output occurs in private columns, for each group of rows.

Groups of rows are the combinations of values of public columns.
"""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_learn.toolkit import ALL_ROWS, Cell, GroupCounts, OutputCounts
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.estimates.private_table import PrivateReader
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.histogram import table_indexes
from labeldp_compile.tabular.reader import TableReader

MAX_GROUPS = 10_000
Cells = tuple[list[tuple[Cell, Any]], NDArray[np.int64]]
"""Cells, each with its rank, and the index [n] of each row's cell among them."""
_NAN = math.nan  # one object, so that all NaN are the same name


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


def count_outputs(
    sources: Sequence[PrivateReader], by: Sequence[str] = (), observer: Observer = QUIET
) -> list[GroupCounts]:
    """The counts of all rows of all sources, then those of each group by its name.

    The groups are the combinations of the columns ``by`` that occur, or without them those of the
    artifacts' groups. Rows that ``randomize`` left without a label, because they are beyond a
    person's bound, are not counted. Raises DataError for an empty table, for other nulls, for
    values that are not outputs of the row's table, and for more than ``MAX_GROUPS`` combinations of
    ``by``.
    """
    numbers: dict[Cell, tuple[int, Any]] = {}  # the number and the rank of each cell
    starts = np.cumsum([0, *(t.outputs for one in sources for t in one.artifact.tables)])
    m, first = int(starts[-1]), 0
    # Keys, cell · m + output, increasing, and how often each occurs.
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for source in sources:
        reader, cells_in = source.reader, _cells_of(source.reader, source.artifact.groups, by)
        columns = dict.fromkeys([*reader.label_columns, *reader.group_names, *by])
        for every in reader.columns(list(columns)):
            batch = source.with_label(every)
            cells, indices = cells_in(batch)
            here = [numbers.setdefault(cell, (len(numbers), rank))[0] for cell, rank in cells]
            if by and len(numbers) > MAX_GROUPS:
                names = " and ".join(map(repr, by))
                raise refused(reader.path, f"{names}: more than {MAX_GROUPS:,} groups")
            outputs = source.output_indices(batch) + first
            new = np.unique(outputs + m * np.array(here, np.int64)[indices], return_counts=True)
            keys, counts = _sums(*map(np.concatenate, zip((keys, counts), new, strict=True)))
            observer.rows(len(batch))
        first += source.outputs
    if not len(keys):
        raise refused(sources[0].reader.path, "has no rows")
    groups = [GroupCounts((), _by_table(starts, *_sums(keys % m, counts)))]
    # Keys are in order, so each cell is a range of them.
    ends = np.searchsorted(keys, np.arange(len(numbers) + 1) * m)
    for cell in sorted(filter(None, numbers), key=lambda cell: numbers[cell][1]):
        number, _ = numbers[cell]
        part = slice(ends[number], ends[number + 1])
        groups.append(GroupCounts(cell, _by_table(starts, keys[part] - number * m, counts[part])))
    return groups


def _sums(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each key once, increasing, with the sum of its counts."""
    distinct, indices = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, indices, counts)
    return distinct, totals


def _by_table(
    starts: NDArray[np.int64], outputs: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[int, OutputCounts]:
    """The counts of increasing indices, by the tables that occur; a table begins at each start."""
    tables = np.searchsorted(starts, outputs, side="right") - 1
    return {
        table: OutputCounts(outputs[tables == table] - starts[table], counts[tables == table])
        for table in np.unique(tables).tolist()
    }


def _cells_of(
    reader: TableReader, groups: Groups, by: Sequence[str]
) -> Callable[[pa.RecordBatch], Cells]:
    """From a batch to its cells, each with its rank, and the index [n] of each row's cell.

    Without columns ``by``, the cells are those of an artifact's ``groups``, if it has any. Raises
    DataError for columns that cannot form groups.
    """
    if by or not groups.columns:
        return lambda batch: _combinations(reader.path, batch, by)
    # Each cell for itself, although several may share a table.
    each = Groups.each(*groups.columns)
    index = table_indexes(reader, each)

    def of_groups(batch: pa.RecordBatch) -> Cells:
        numbers, indices = np.unique(index(batch), return_inverse=True)
        return [((each.name(number),), number) for number in numbers.tolist()], indices

    return of_groups


def _combinations(path: Path, batch: pa.RecordBatch, by: Sequence[str]) -> Cells:
    """The combinations of values of some columns; one without values if there is no column."""
    cells: list[Cell] = [()]
    indices = np.zeros(len(batch), np.int64)
    for name in by:
        values, here = distinct_values(path, name, batch.column(name))
        codes, indices = np.unique(indices * len(values) + here, return_inverse=True)
        pairs = (divmod(code, len(values)) for code in codes.tolist())
        cells = [(*cells[cell], values[value]) for cell, value in pairs]
    return [(cell, [rank(value) for value in cell]) for cell in cells], indices


def distinct_values(
    path: Path, column: str, values: pa.Array
) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, and the index [n] of each row's value among them.

    Raises DataError for a column that cannot form groups.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        # Dates beyond the year 9999, for example, are no values of Python.
        names = encoded.dictionary.to_pylist()
    except (pa.ArrowException, ArithmeticError, ValueError, LookupError):
        reason = f"cannot group by {column!r}, which has the type {values.type}"
        raise refused(path, reason) from None
    # All NaN have the same name.
    names = [_NAN if name != name else name for name in names]  # noqa: PLR0124
    return names, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def rank(value: Any) -> tuple[bool, bool, Any]:
    """For sorting values: numbers in order, then other values as text, then null."""
    number = isinstance(value, int | float) and value is not _NAN
    return value is None, not number, value if number else in_words(value)
