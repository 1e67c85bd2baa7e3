"""The public groups of labels, as an artifact takes them.

Whatever is not listed in the certificate goes to the table of all other groups, nulls included, and
never raises. What a column may be is decided by the type that it declares: integers for groups that
are integers, text for text. Numbers are not rounded: a column of floats is refused, and an object
that is no integer is no listed group.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from labeldp_runtime.canonical import Canonical, category_rows
from labeldp_runtime.columns import read_group_column
from labeldp_runtime.errors import GroupError, LabelError


class Groups:
    """The groups that a certificate lists, and the column that they are declared to come from."""

    def __init__(self, stated: dict[str, Any], element_type: str) -> None:
        """``element_type`` is that of the graph's input: int64 or string.

        Raises KeyError, TypeError or ValueError for what is no list of groups.
        """
        values = stated["values"]
        wanted = str if element_type == "string" else int
        if type(values) is not list or not values or set(map(type, values)) != {wanted}:
            raise ValueError("the groups are not of the type that the graph takes")
        if wanted is int and not -(2**63) <= min(values) <= max(values) < 2**63:
            raise ValueError("a group does not fit int64")
        self.column = str(stated["column"])
        self.element_type = element_type
        self._missing = _unlisted(values)
        self.canonical: Canonical = category_rows(values, len(values))

    def read(self, values: Any, labels: int) -> NDArray[Any]:
        """Groups [n] as the graph takes them; raises GroupError unless they are one a label."""
        if values is None:
            raise GroupError(
                "this artifact has a table for each group: give groups=, one a label, "
                f"from the column {self.column!r}"
            )
        try:
            groups = read_group_column(values, self.element_type, self._missing)
        except LabelError as error:
            raise GroupError(str(error).replace("labels", "groups")) from None
        if len(groups) != labels:
            raise GroupError(f"expected one group a label, got {len(groups)} for {labels} labels")
        return groups


def refuse_groups(groups: Groups | None, where: str) -> None:
    """Raise GroupError where an artifact with groups cannot be used."""
    if groups is not None:
        raise GroupError(
            f"{where} does not take artifacts with groups: call the randomizer itself, with "
            f"groups= from the column {groups.column!r}"
        )


def _unlisted(values: list[Any]) -> str | int:
    """What stands in for a null: a value that is not listed."""
    if isinstance(values[0], str):
        return "\x7f" * (1 + max(map(len, values)))
    listed = set(values)
    return next(-n for n in range(1, len(listed) + 2) if -n not in listed)
