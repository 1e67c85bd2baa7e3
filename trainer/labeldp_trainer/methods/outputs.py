"""Private labels as outputs of the artifact that is named for them, and what they say about labels.

It cannot be proved that private labels are outputs of an artifact, but it can be disproved, or be
far from likely. A run then says so. It is not refused: true labels must not decide an exit code.

Where an artifact has several tables, public columns say which one randomizes a row: features, read
as ``labeldp randomize`` reads them. Unlisted values and nulls have the table of all other rows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from labeldp_learn.toolkit import PrivateRows
from labeldp_verify.analysis import lattice_indices
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, Groups, Randomizer
from numpy.typing import NDArray

from labeldp_compile.toolkit import group_array, indexes_of_columns
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.labels import Cells, Coded, numbers, places, taken


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


def rows_by_table(
    artifact: Artifact, table: Int64[np.ndarray, " n"] | None, private: Any
) -> tuple[list[PrivateRows], bool]:
    """The private labels [n] by the table of their row, and whether all are outputs of it.

    ``table`` [n] is the number of each row's table, None where all rows have the first. Tables
    without rows are left out. What is no output has the code 0.
    """
    tables = np.zeros(len(private), np.int64) if table is None else table
    codes = np.empty(len(private), np.int64)
    for number in np.unique(tables).tolist():
        rows = np.flatnonzero(tables == number)
        own = private if len(rows) == len(private) else taken(private, rows)
        codes[rows] = _output_indices(artifact.tables[number], own)
    ones = np.ones(len(private))
    parts = PrivateRows.by_table(artifact, tables, np.maximum(codes, 0), ones)
    return parts, bool((codes >= 0).all())


def _output_indices(randomizer: Randomizer, private: Any) -> Int64[np.ndarray, " r"]:
    """The index of each private label among the outputs; −1 for what is not one."""
    if not isinstance(randomizer, AdditiveRandomizer):
        return places(private, randomizer.values)
    array = numbers(private)
    if array is None:
        return np.full(len(private), -1)
    with np.errstate(over="ignore"):
        return lattice_indices(randomizer, array.astype(np.float64))


def are_possible(artifact: Artifact, parts: Sequence[PrivateRows]) -> bool:
    """Whether the shares of private labels that are outputs can be as they are by chance."""
    if not all(part.is_small for part in parts):
        return True
    # Only private labels of a file need the estimators.
    from labeldp_learn.toolkit import hardly_private  # noqa: PLC0415

    return not hardly_private(artifact, {part.number: part.codes for part in parts})


def added_variance(targets: Coded, parts: Sequence[PrivateRows], *, classes: bool) -> float:
    """About the mean variance of unbiased targets [n, k] that randomizing added; 0 if unknown."""
    count = np.bincount(targets.codes, minlength=len(targets.rows)) / len(targets)
    square = float(count @ np.square(targets.rows).sum(axis=1))
    if classes:  # the expectation of a target is a one-hot label
        return max((square - 1) / int(targets.rows.shape[1]), 0.0)
    expected, n = 0.0, sum(len(part.rows) for part in parts)
    for part in parts:
        if not part.is_small:
            return 0.0
        seen, first = np.unique(part.codes, return_index=True)
        values = targets.rows[targets.codes[part.rows[first]], 0]
        chances = part.matrix[:, seen]
        means = chances @ values / np.maximum(chances.sum(axis=1), np.finfo(float).tiny)
        expected += len(part.rows) / n * float(part.shares @ means**2)
    return max(square - expected, 0.0) if parts else 0.0
