"""Tables by group in a terminal."""

from labeldp_verify.artifact import Artifact
from labeldp_verify.rounded import at_most

from labeldp_compile.cli.output import clipped, text_table
from labeldp_compile.tools.inspection.overview import overview

SHOWN = 60
_NAME_COLUMNS = 44


def group_table(decoded: Artifact, shown: int = SHOWN) -> list[str]:
    """A line for each table. Of many tables, those with most rows, and that of all other rows."""
    facts = overview(decoded)
    numeric = facts[0].bias_in_range is not None
    rows = facts
    if len(facts) > shown + 1:  # a line that says so is as long as one more group
        by_rows = sorted(facts[:-1], key=lambda one: (-one.rows, one.table))
        rows = [*by_rows[: shown - 1], facts[-1]]
    header = ["group", "rows", "outputs", "ε of a label", "loss", *(["bias"] if numeric else [])]
    lines = text_table(
        header,
        [
            [
                clipped(one.name, _NAME_COLUMNS),
                f"{one.rows:,}",
                f"{one.outputs:,}",
                f"≤ {at_most(one.epsilon_bound)}",
                f"{one.loss:.6g}",
                *([] if one.bias_in_range is None else [at_most(one.bias_in_range, 3)]),
            ]
            for one in rows
        ],
    )
    if len(rows) < len(facts):
        lines.append(f"{len(facts) - len(rows):,} more groups, each with fewer rows")
    return lines
