"""Estimates, and the weights of estimates, as long tables: a row for each number.

**Estimates** are for pandas, DuckDB and dashboards. First come the columns of the groups, under
their own names, then those of ``COLUMNS``. Names of columns must differ, so a column of groups
cannot have the name of one of these.

**Weights** are joined with private labels elsewhere. A row says what one private label adds to one
estimate: the mean of ``weight`` over private labels estimates the share or the mean of the true
ones without bias, and the mean of ``noise``, divided by the number of rows, its variance for these
rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_learn.toolkit import (
    CONFIDENCE,
    MOST_ENTRIES,
    QUANTILES,
    ColumnEstimates,
    Estimates,
    Estimator,
    GroupEstimates,
    values_of,
)
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import AdditiveRandomizer, JointDomain

from labeldp_compile.errors import InputError
from labeldp_compile.estimates.aggregates import Aggregates, estimators_of
from labeldp_compile.estimates.counts import in_words
from labeldp_compile.tabular.csv_sink import csv_holds

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
_WEIGHTS_OF = pa.schema(
    [
        ("table_number", pa.int64()),
        ("group_name", pa.string()),
        ("label_column", pa.string()),
        ("statistic", pa.string()),
        ("label", pa.string()),
        ("position", pa.int64()),
    ]
)
_NUMBERS = pa.schema([("weight", pa.float64()), ("noise", pa.float64())])
_BLOCK = 1 << 16  # rows
Row = tuple[Any, ...]


def require_free_names(by: tuple[str, ...]) -> None:
    """Raise InputError if a column of groups is called like another column of the table."""
    for name in by:
        if name in COLUMNS.names:
            raise InputError(
                f"{name!r} is also a column of the table that is written: rename the column of "
                "the groups"
            )


def schema_of(aggregates: Aggregates) -> pa.Schema:
    """Columns of groups have their own types; text if their tables differ, or CSV has no such."""
    types = ((name, _written_type(kind)) for name, kind in aggregates.by.items())
    return pa.schema([*types, *COLUMNS])


def _written_type(kind: pa.DataType | None) -> pa.DataType:
    numbers = kind is not None and (pa.types.is_primitive(kind) or pa.types.is_decimal(kind))
    return kind if numbers and csv_holds(kind) else pa.string()


def rows_of(aggregates: Aggregates) -> Iterator[Row]:
    """The rows of the table, in the order of ``schema_of``."""
    names = aggregates.estimation.class_names()
    ends = [(labels[0], labels[-1]) for labels in aggregates.class_labels()]
    how = (aggregates.target, CONFIDENCE, aggregates.confidence.together or None)
    are_text = [pa.types.is_string(_written_type(kind)) for kind in aggregates.by.values()]
    for group in aggregates.groups:
        cell = group.cell or (None,) * len(are_text)
        values = (
            in_words(value) if is_text and value is not None else value
            for value, is_text in zip(cell, are_text, strict=True)
        )
        about = (*values, not group.cell, group.rows)
        whole = [*_shares_and_mean(group, names), *_quantiles(group, names, ends)]
        yield from ((*about, ", ".join(aggregates.columns), *row, *how) for row in whole)
        for part in group.columns:
            rows = _shares_and_mean(part, list(map(str, part.labels)))
            yield from ((*about, part.name, *row, *how) for row in rows)


def _quantiles(
    group: GroupEstimates, names: list[str], ends: list[tuple[Any, Any]]
) -> Iterator[Row]:
    for q in group.quantiles or []:
        least, most = map(float, ends[q.estimate])
        low = high = None
        if q.interval is not None:
            low, high = float(ends[q.interval[0]][0]), float(ends[q.interval[1]][1])
        value = least if least == most else None
        yield ("quantile", names[q.estimate], q.estimate, q.share, value, None, low, high, None)


def _shares_and_mean(of: GroupEstimates | ColumnEstimates, names: list[str]) -> Iterator[Row]:
    if of.mean is not None:
        yield ("mean", None, None, None, *_numbers(of.mean, 0), None)
    if of.histogram is not None and of.projected is not None:
        for i, (name, projected) in enumerate(zip(names, of.projected.tolist(), strict=True)):
            yield ("share", name, i, None, *_numbers(of.histogram, i), projected)


def _numbers(estimates: Estimates, i: int) -> Row:
    stated = estimates.at(i)
    return stated["estimate"], float(estimates.error[i]), stated["low"], stated["high"]


def weights_of(artifact: Artifact, path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the rows of the table of weights; ``path`` names the artifact in messages.

    ``output`` is a private label; a label of several columns has ``output_NAME`` for each. Raises
    InputError if the artifact supports no estimate, or too many rows are needed.
    """
    estimation = estimators_of(path, artifact, tables=range(len(artifact.tables)))
    parts = [
        (table, key, each)
        for table, estimators in estimation.estimators.items()
        for key, each in estimators.estimators.items()
        if key != QUANTILES and estimation.is_given(key)
    ]
    rows = sum(each.size * artifact.tables[table].outputs for table, _, each in parts)
    if rows > MOST_ENTRIES:
        raise InputError(
            f"{path}: a table of its weights would have {rows:,} rows; the limit is "
            f"{MOST_ENTRIES:,}"
        )
    outputs = {t: _outputs(artifact, artifact.table(t)) for t in estimation.estimators}
    kinds = [(name, column.type) for name, column in outputs[0].items()]
    schema = pa.schema([*_WEIGHTS_OF, *kinds, *_NUMBERS])
    labels: dict[str | None, list[str]] = {None: estimation.class_names()}
    labels |= {name: list(map(str, own)) for name, own in estimation.label_columns()}

    def batches() -> Iterator[pa.RecordBatch]:
        for table, (what, column), each in parts:
            names = column or ", ".join(artifact.certificate.label_columns)
            first = (table, artifact.groups.name(table), names)
            of = [None] if what == "mean" else labels[column]
            statistic = "mean" if what == "mean" else "share"
            yield from _blocks((*first, statistic), of, each, outputs[table], schema)

    return schema, batches()


def _outputs(artifact: Artifact, table: Table) -> dict[str, pa.Array]:
    """The columns [m] of the private labels, in the order of the outputs."""
    domain, r = table.domain, table.randomizer
    if isinstance(r, AdditiveRandomizer):
        return {"output": pa.array(values_of(r)(np.arange(r.outputs)))}
    if isinstance(domain, JointDomain) and not artifact.answers_with_sets:
        places = domain.places_of(np.array([int(value) for value in r.values], np.int64))
        names = table.certificate.label_columns
        return {
            f"output_{name}": pa.array(list(part.listed)).take(pa.array(at))
            for name, part, at in zip(names, domain.parts, places, strict=True)
        }
    return {"output": pa.array(r.values)}


def _blocks(
    first: Row,
    labels: list[Any],
    each: Estimator,
    outputs: dict[str, pa.Array],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The rows of one kind of estimate, label by label."""
    m = len(next(iter(outputs.values())))
    weight, noise = each.by_output(m)
    step = max(_BLOCK // m, 1)
    for start in range(0, len(labels), step):
        part = labels[start : start + step]
        n = len(part)
        positions = np.repeat(np.arange(start, start + n), m)
        arrays = [
            *(pa.repeat(pa.scalar(value), n * m) for value in first),
            pa.array(part, pa.string()).take(pa.array(positions - start)),
            pa.nulls(n * m, pa.int64()) if labels == [None] else pa.array(positions),
            *(pa.concat_arrays([column] * n) for column in outputs.values()),
            *(pa.array(a[:, start : start + n].T.ravel()) for a in (weight, noise)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
