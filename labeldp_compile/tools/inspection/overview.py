"""The main figures of each table of an artifact, and the choice of the table to show."""

from dataclasses import dataclass
from pathlib import Path

from labeldp_verify.artifact import Artifact
from labeldp_verify.opening import find_table, table_of


@dataclass(frozen=True)
class TableFacts:
    """One table, as the certificate states it.

    Attributes:
        table: its number.
        name: of its group.
        rows: public number of rows that the prior counted.
        outputs: how many.
        epsilon_bound: proved upper bound on its ε.
        loss: noisy label loss under its own prior.
        largest_bias: of the mean output, for real labels at the points of the grid; None for
            categories.
        bias_in_range: the largest bias for all labels in the range.
    """

    table: int
    name: str
    rows: int
    outputs: int
    epsilon_bound: float
    loss: float
    largest_bias: float | None
    bias_in_range: float | None


def overview(decoded: Artifact) -> list[TableFacts]:
    """All tables; the last one is for all other rows."""
    return [
        TableFacts(
            table=i,
            name=decoded.groups.name(i),
            rows=table.size,
            outputs=table.outputs,
            epsilon_bound=table.epsilon_label_bound,
            loss=table.utility.noisy_label_loss,
            largest_bias=table.utility.largest_bias,
            bias_in_range=decoded.table(i).bias_in_range,
        )
        for i, table in enumerate(decoded.certificate.tables)
    ]


def shown_table(artifact: Artifact, path: Path, group: str | None) -> int:
    """The number of the table to show: that of a group as it was typed, or the one with most rows.

    Raises InputError for a group that is not listed, or if the artifact has no groups.
    """
    if group is None:
        sizes = [table.size for table in artifact.certificate.tables]
        return sizes.index(max(sizes))
    table_of(artifact, path, group)
    return find_table(artifact.groups, group)
