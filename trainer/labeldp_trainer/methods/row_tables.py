"""The table that randomizes each row's label, where an artifact has one for each public group.

Groups are features: the columns that the certificate names, read as ``labeldp randomize`` reads
them. Unlisted values and nulls have the table of all other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.prior.histogram import indexes_of_columns
from labeldp_compile.tabular.columns import group_array
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.labels import Cells


def group_columns(groups: Groups, part: DataPart) -> dict[str, NDArray[Any]]:
    """The columns [n] of the groups by their names, as the artifact takes them. Raises DataError.

    Their types are as an artifact needs them, or a CSV file's, in which nothing has a type.
    """
    found = {}
    for column in groups.columns:
        given, cells = part.columns[column.name], False
        if isinstance(given, Cells):
            given, cells = given.values, True
        found[column.name] = group_array(Path(part.source), column, given, cells=cells)
    return found


def table_of_row(groups: Groups, part: DataPart) -> Int64[np.ndarray, " n"]:
    """[n] the number of each row's table. Raises DataError."""
    columns = group_columns(groups, part)
    return indexes_of_columns(groups)([columns[column.name] for column in groups.columns])


def tables_of(artifact: Artifact) -> Iterator[tuple[Table, str]]:
    """Every table, and how messages call its group; nothing where there is only one."""
    groups = artifact.groups
    for i in range(groups.tables):
        yield artifact.table(i), f"group {groups.name(i)}" if groups.columns else ""


def rows_by_table(
    artifact: Artifact, table: Int64[np.ndarray, " n"] | None, count: int
) -> Iterator[tuple[Table, Int64[np.ndarray, " r"]]]:
    """Each table that has rows, and which of all ``count`` rows they are.

    ``table`` [n] are the numbers of ``table_of_row``; None for an artifact without groups.
    """
    if table is None:
        yield artifact.table(0), np.arange(count)
        return
    order = np.argsort(table, kind="stable")
    numbers, starts = np.unique(table[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        yield artifact.table(number), rows
