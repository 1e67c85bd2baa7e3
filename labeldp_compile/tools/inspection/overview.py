"""What tables by group come to: each in a line, in the order of the tables."""

from __future__ import annotations

from dataclasses import dataclass

from labeldp_verify.verified import DecodedGroups


@dataclass(frozen=True)
class GroupFacts:
    """One table, as the certificate states it.

    Attributes:
        table: its number.
        name: of its group.
        rows: public number of rows that the prior counted.
        outputs: how many.
        epsilon_bound: upper bound on its ε, proved.
        loss: noisy label loss under its own prior.
        largest_bias: of the means of its outputs, of real labels at the points of the grid; None
            for categories.
        bias_in_range: the largest for all labels in the range.
    """

    table: int
    name: str
    rows: int
    outputs: int
    epsilon_bound: float
    loss: float
    largest_bias: float | None
    bias_in_range: float | None


def overview(decoded: DecodedGroups) -> list[GroupFacts]:
    """All tables; the last is that of all other rows."""
    stated = decoded.certificate.groups
    assert stated is not None
    return [
        GroupFacts(
            table=i,
            name=decoded.randomizer.groups.name(i),
            rows=table.size,
            outputs=table.outputs,
            epsilon_bound=table.epsilon_label_bound,
            loss=table.utility.noisy_label_loss,
            largest_bias=table.utility.largest_bias,
            bias_in_range=decoded.table(i).bias_in_range,
        )
        for i, table in enumerate(stated.tables)
    ]


def largest(decoded: DecodedGroups) -> int:
    """The table with most rows, the first of them."""
    rows = [facts.rows for facts in overview(decoded)]
    return rows.index(max(rows))
