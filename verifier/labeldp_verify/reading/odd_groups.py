"""Groups whose public sizes are odd for groups: what a label in a group's place would look like.

Only public things are looked at: how many values are listed, how many groups there are, and how
many rows. Labels are not, and no figure is named: were a group a label, its size would be a count
of labels. A warning proves nothing, and neither does its absence.
"""

from __future__ import annotations

from collections.abc import Sequence

from labeldp_verify.forms import Groups
from labeldp_verify.printable import clipped, one_line

_NAME_COLUMNS = 40
_ROWS = 2  # of a group or a value, at most, on average: fewer than a group has


def odd_groups(groups: Groups, sizes: Sequence[int]) -> list[str]:
    """What is odd, in plain words, each of one printable line.

    Args:
        groups: the public map from columns to T + 1 tables.
        sizes: [T + 1] the public number of rows of each.
    """
    rows, found = sum(sizes), []
    for column in groups.columns:
        if column.values is not None and _ROWS * len(column.values) >= rows:
            name = clipped(one_line(repr(column.name)), _NAME_COLUMNS)
            found.append(
                f"about as many values of {name} are listed as there are rows, so that single rows "
                "are assigned to groups: if labels decided that, the artifact tells them"
            )
    filled = sum(size > 0 for size in sizes[: groups.own_tables])
    if _ROWS * filled >= rows:
        found.append(
            "there are about as many groups as rows: if labels decided the groups, the artifact "
            "tells them"
        )
    return found
