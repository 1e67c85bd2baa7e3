"""Count the labels of a Spark DataFrame for a private prior; noise is added later, once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from labeldp_runtime.errors import GroupError, LabelError
from labeldp_runtime.spark.columns import column as column_of
from labeldp_runtime.spark.columns import find_column
from labeldp_runtime.whole_file import replaced_when_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def label_counts(
    df: DataFrame, column: str, *, group_columns: Sequence[str] = (), counts: str = "n"
) -> pa.Table:
    """A pyarrow table {column, counts}: each label that occurs, and the number of its rows.

    With ``group_columns`` these come before the label, and there is a row for each combination
    that occurs. These are EXACT counts, as sensitive as the labels: no noise is added here. Nulls
    are a row of their own, and so is NaN; −0.0 counts as 0.0. Labels that do not occur are missing:
    ``labeldp compile`` joins the domain. Runs one job. Raises LabelError or GroupError for a column
    that is missing or named twice.
    """
    if isinstance(group_columns, str):
        raise TypeError("group_columns must be a list of names, not one name")
    find_column(df, column, LabelError)
    for name in group_columns:
        find_column(df, name, GroupError)
    names = [*group_columns, column]
    if len(set(names)) < len(names):
        raise GroupError("a column is named twice among the label and group_columns: name it once")
    if counts in names:
        raise LabelError(
            f"{counts!r} is a label or group column: give the counts another name with counts="
        )
    # Names without a meaning, since those of columns may hold dots.
    keys = [f"c{index}" for index in range(len(names))]
    values = [_plain(df, name).alias(key) for name, key in zip(names, keys, strict=True)]
    counted = df.select(*values).groupBy(*keys).count()
    return counted.toArrow().rename_columns([*names, counts])


def _plain(df: DataFrame, name: str) -> Any:
    """A column in which Spark compares texts as the artifact does."""
    collated = df.schema[name].dataType.simpleString().startswith("string collate")
    return column_of(df, name).cast("string") if collated else column_of(df, name)


def write_label_counts(
    df: DataFrame,
    column: str,
    path: str | Path,
    *,
    group_columns: Sequence[str] = (),
    counts: str = "n",
    overwrite: bool = False,
) -> int:
    """Write ``label_counts`` to a Parquet file of mode 0600; returns the number of rows counted.

    For ``prior: {kind: private, data: PATH, counts: n, rows: …}`` in a spec. The file holds EXACT
    counts: keep it where the labels may be, and remove it after the compile. It appears whole or
    not at all. Raises FileExistsError unless ``overwrite``, before anything is counted.
    """
    path = Path(path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(f"{path}: expected a .parquet name")
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path}: exists already; use overwrite=True to replace it")
    table = label_counts(df, column, group_columns=group_columns, counts=counts)
    with replaced_when_whole(path, most=0o600) as file:
        parquet.write_table(table, file)
    return int(sum(table.column(counts).to_pylist()))
