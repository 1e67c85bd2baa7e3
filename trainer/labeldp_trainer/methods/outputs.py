"""Private labels as outputs of the artifact that is named for them, and what they say about labels.

It cannot be proved that private labels are outputs of an artifact, but it can be disproved, or be
far from likely. A run then says so. It is not refused: true labels must not decide an exit code.

Where an artifact has several tables, public columns say which one randomizes a row: features, read
as ``labeldp randomize`` reads them. Unlisted values and nulls have the table of all other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from labeldp_verify.analysis import likeliest_shares, matrix, value
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import AdditiveRandomizer, Groups
from numpy.typing import NDArray

from labeldp_compile.toolkit import group_array, indexes_of_columns
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.labels import Cells, Coded, numbers, places, taken

MOST_ENTRIES = 1 << 24
"""Of Pr[output | label]; larger matrices are not computed."""
_FROM_UNIFORM = 0.01  # a share that starts at 0 stays there


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


@dataclass(frozen=True)
class TableRows:
    """The rows that one table of an artifact randomizes.

    Attributes:
        number: of the table.
        table: Pr[output | label] and all else that is known of them.
        rows: [r] their numbers.
        private: [r] their private labels.
    """

    number: int
    table: Table
    rows: Int64[np.ndarray, " r"]
    private: Any

    @cached_property
    def matrix(self) -> Float64[np.ndarray, "k m"]:
        """Pr[output | label]."""
        return matrix_of(self.table)[0]

    @cached_property
    def codes(self) -> Int64[np.ndarray, " r"]:
        """The place of each private label among the m outputs; 0 for what is not one."""
        return np.maximum(places(self.private, matrix_of(self.table)[1]), 0)

    def are_outputs(self) -> bool:
        """Whether all private labels are outputs of the table."""
        randomizer = self.table.randomizer
        if isinstance(randomizer, AdditiveRandomizer):  # whose outputs may be too many to list
            return _on_lattice(randomizer, self.private)
        return not (places(self.private, randomizer.values) < 0).any()

    def shares(self) -> Float64[np.ndarray, " k"]:
        """About the shares of the true labels behind these outputs: the likeliest ones.

        What they leave open is as in the artifact's prior.
        """
        counts = np.bincount(self.codes, minlength=self.matrix.shape[1])
        return likeliest_shares(self.matrix, counts, self.expected_shares())

    def expected_shares(self) -> Float64[np.ndarray, " k"]:
        """Those of the artifact's prior, none of them 0."""
        weights = np.array([float(w) for w in self.table.certificate.prior.weights])
        return (1 - _FROM_UNIFORM) * weights / weights.sum() + _FROM_UNIFORM / len(weights)


def are_possible(artifact: Artifact, parts: Sequence[TableRows]) -> bool:
    """Whether the artifact can have made these private labels, and their shares by chance."""
    if not all(part.are_outputs() for part in parts):
        return False
    sizes = (part.table.domain.size * part.table.randomizer.outputs for part in parts)
    if max(sizes, default=0) > MOST_ENTRIES:
        return True
    # Estimates load the compiler, which only private labels of a file need.
    from labeldp_compile.toolkit import hardly_private  # noqa: PLC0415

    return not hardly_private(artifact, {part.number: part.codes for part in parts})


def rows_by_table(
    artifact: Artifact, table: Int64[np.ndarray, " n"] | None, private: Any
) -> list[TableRows]:
    """The private labels [n] by the table of their row; tables without rows are left out.

    ``table`` [n] is the number of each row's table, None where all rows have the first.
    """
    if table is None:
        return [TableRows(0, artifact.table(0), np.arange(len(private)), private)]
    order = np.argsort(table, kind="stable")
    numbers, starts = np.unique(table[order], return_index=True)
    parts = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
    return [TableRows(i, artifact.table(i), rows, taken(private, rows)) for i, rows in parts]


def matrix_of(table: Table) -> tuple[Float64[np.ndarray, "k m"], list[int | str | float]]:
    """Pr[output | label], and the m outputs."""
    randomizer = table.randomizer
    chances = matrix(randomizer, range(table.domain.size))
    return chances, [value(randomizer, o) for o in range(randomizer.outputs)]


def added_variance(targets: Coded, parts: Sequence[TableRows], *, classes: bool) -> float:
    """About the mean variance of unbiased targets [n, k] that randomizing added; 0 if unknown."""
    count = np.bincount(targets.codes, minlength=len(targets.rows)) / len(targets)
    square = float(count @ np.square(targets.rows).sum(axis=1))
    if classes:  # the expectation of a target is a one-hot label
        return max((square - 1) / int(targets.rows.shape[1]), 0.0)
    expected, n = 0.0, sum(len(part.rows) for part in parts)
    for part in parts:
        size = part.table.domain.size * part.table.randomizer.outputs
        if size > MOST_ENTRIES:
            return 0.0
        seen, first = np.unique(part.codes, return_index=True)
        values = targets.rows[targets.codes[part.rows[first]], 0]
        chances = part.matrix[:, seen]
        means = chances @ values / np.maximum(chances.sum(axis=1), np.finfo(float).tiny)
        expected += len(part.rows) / n * float(part.shares() @ means**2)
    return max(square - expected, 0.0) if parts else 0.0


def _on_lattice(randomizer: AdditiveRandomizer, labels: Any) -> bool:
    array = numbers(labels)
    if array is None:
        return False
    values = np.unique(array.astype(np.float64))
    if not np.isfinite(values).all():
        return False
    with np.errstate(over="ignore"):
        steps = np.rint((values - randomizer.origin) / randomizer.unit)
    points = np.clip(steps, randomizer.low, randomizer.high)
    # the graph's own two float64 operations; what division rounded away is looked for exactly
    left = values[points * randomizer.unit + randomizer.origin != values]
    return all(len(randomizer.points_of(number)) for number in left.tolist())
