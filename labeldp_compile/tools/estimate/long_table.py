"""Estimates as one long table: a row for each number, for pandas, DuckDB and dashboards.

First come the columns of the groups, under their own names, then those of ``COLUMNS``. A table may
have no two columns of one name, so a column of groups must not be called like one of these.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.csv_sink import csv_holds
from labeldp_compile.tools.estimate.aggregates import Aggregates
from labeldp_compile.tools.estimate.cells import in_words
from labeldp_compile.tools.estimate.document import members_of_classes
from labeldp_compile.tools.estimate.estimate import ColumnEstimates, GroupEstimates
from labeldp_compile.tools.estimate.intervals import CONFIDENCE, Estimates

# None of these names is reserved in SQL.
COLUMNS = pa.schema(
    [
        ("all_rows", pa.bool_()),  # whether the row is about all rows; then groups are null
        ("rows", pa.int64()),
        ("label_column", pa.string()),
        ("statistic", pa.string()),  # mean, share or quantile
        ("label", pa.string()),  # whose share it is, or that is the quantile
        ("position", pa.int64()),  # of the label in its order, from 0
        ("quantile", pa.float64()),  # 0.05 … 0.95
        ("estimate", pa.float64()),  # null for a quantile that is no single number
        ("standard_error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("projected", pa.float64()),  # of a share
        ("target", pa.string()),
        ("confidence", pa.float64()),
        ("simultaneous", pa.int64()),  # intervals that hold at once, null if each is for itself
    ]
)
Row = tuple[Any, ...]


def require_free_names(by: tuple[str, ...]) -> None:
    """Raise InputError if a column of groups is called like another column of the table."""
    for name in by:
        if name in COLUMNS.names:
            raise InputError(
                f"{name!r} is also a column of the table that is written: rename the column of "
                "the groups"
            )


def schema_of(found: Aggregates) -> pa.Schema:
    """Columns of groups have their own types; text if their tables differ, or CSV has no such."""
    return pa.schema([*((name, _kept(kind)) for name, kind in found.by.items()), *COLUMNS])


def _kept(kind: pa.DataType | None) -> pa.DataType:
    numbers = kind is not None and (pa.types.is_primitive(kind) or pa.types.is_decimal(kind))
    return kind if numbers and csv_holds(kind) else pa.string()


def rows_of(found: Aggregates) -> Iterator[Row]:
    """The rows of the table, in the order of ``schema_of``."""
    names = found.estimation.class_names()
    numbers = [_number(members) for members in members_of_classes(found.estimation)]
    how = (found.target, CONFIDENCE, found.confidence.together or None)
    are_text = [pa.types.is_string(_kept(kind)) for kind in found.by.values()]
    for group in found.groups:
        cell = group.cell or (None,) * len(are_text)
        values = (
            in_words(value) if is_text and value is not None else value
            for value, is_text in zip(cell, are_text, strict=True)
        )
        about = (*values, not group.cell, group.rows)
        column = ", ".join(found.columns)
        for statistic in _statistics(group, names, numbers):
            yield (*about, column, *statistic, *how)
        for part in group.columns:
            for statistic in _shares_and_mean(part, list(map(str, part.labels))):
                yield (*about, part.name, *statistic, *how)


def _number(members: list[Any]) -> tuple[float, float] | None:
    """The least and the largest label of a class; None for text."""
    ends = members[0], members[-1]
    if any(isinstance(end, str) for end in ends):
        return None
    return float(ends[0]), float(ends[1])


def _statistics(
    group: GroupEstimates, names: list[str], numbers: list[tuple[float, float] | None]
) -> Iterator[Row]:
    yield from _shares_and_mean(group, names)
    for q in group.quantiles or []:
        ends = numbers[q.estimate]
        assert ends is not None
        low, high = (None, None)
        if q.interval is not None:
            first, last = numbers[q.interval[0]], numbers[q.interval[1]]
            assert first is not None and last is not None
            low, high = first[0], last[1]
        value = ends[0] if ends[0] == ends[1] else None
        place = q.estimate
        yield ("quantile", names[place], place, q.share, value, None, low, high, None)


def _shares_and_mean(found: GroupEstimates | ColumnEstimates, names: list[str]) -> Iterator[Row]:
    if found.mean is not None:
        yield ("mean", None, None, None, *_numbers(found.mean, 0), None)
    if found.histogram is not None and found.projected is not None:
        for i, (name, projected) in enumerate(zip(names, found.projected.tolist(), strict=True)):
            yield ("share", name, i, None, *_numbers(found.histogram, i), projected)


def _numbers(found: Estimates, i: int) -> Row:
    stated = found.at(i)
    return stated["estimate"], float(found.error[i]), stated["low"], stated["high"]
