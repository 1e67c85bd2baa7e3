"""Count the labels of a Spark DataFrame for a private prior: the noise comes later, and once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_runtime.errors import LabelError
from labeldp_runtime.spark.columns import column as column_of
from labeldp_runtime.spark.columns import find_column
from labeldp_runtime.spark.libraries import pa
from labeldp_runtime.whole_file import replaced_when_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def label_counts(df: DataFrame, column: str, *, counts: str = "n") -> pa.Table:
    """A pyarrow table {column, counts}: each label that occurs, and the number of its rows.

    These are EXACT counts, as sensitive as the labels: no noise is added here. Nulls are a row of
    their own, and so is NaN; −0.0 counts as 0.0. Labels that do not occur are missing:
    ``labeldp compile`` joins the domain. Runs one job. Raises LabelError for a column that is
    missing.
    """
    find_column(df, column, LabelError)
    if counts == column:
        raise LabelError(f"the counts need another name than the label column {column!r}")
    label = column_of(df, column)
    if df.schema[column].dataType.simpleString().startswith("string collate"):
        # Such a type takes texts for equal which the artifact tells apart.
        label = label.cast("string")
    counted = df.select(label.alias("label")).groupBy("label").count()
    return counted.toArrow().rename_columns([column, counts])


def write_label_counts(
    df: DataFrame, column: str, path: str | Path, *, counts: str = "n", overwrite: bool = False
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
        raise FileExistsError(f"{path}: exists already; say overwrite=True to replace it")
    table = label_counts(df, column, counts=counts)
    with replaced_when_whole(path, most=0o600) as file:
        pa.parquet.write_table(table, file)
    return int(sum(table.column(counts).to_pylist()))
