"""The public groups of labels, as an artifact takes them.

Whatever is not listed in the certificate goes to the table of all other groups, nulls included, and
never raises. What a column may be is decided by the type that it declares: integers for groups that
are integers, text for text, numbers for bands. Integers are not rounded: a column of floats is
refused for listed integers, and an object that is no integer is no listed group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.canonical import Canonical, category_rows
from labeldp_runtime.columns import (
    column_named,
    gives_columns,
    read_group_column,
    refuse_misaligned,
)
from labeldp_runtime.columns.same import are_one_column
from labeldp_runtime.errors import GroupError, LabelError
from labeldp_runtime.feed import Feed
from labeldp_runtime.labels import Missing
from labeldp_runtime.lookup import Lookup

_TYPES = {"int64": int, "string": str, "float64": float}


@dataclass(frozen=True)
class GroupColumn:
    """One column: what it is called, where it goes, and the place of each value in it.

    ``places`` gives a value that is not listed the number ``size``.
    """

    name: str
    input: str
    element_type: str
    size: int
    missing: Missing
    places: Canonical

    @classmethod
    def of(cls, stated: dict[str, Any], input_name: str, element_type: str) -> GroupColumn:
        """Of a certificate and a graph; raises KeyError, TypeError or ValueError for what is none.

        ``element_type`` is that of the graph's input: int64, string or float64.
        """
        wanted = _TYPES[element_type]
        listed = stated["bands"] if wanted is float else stated["values"]
        if type(listed) is not list or not listed or set(map(type, listed)) != {wanted}:
            raise ValueError("the groups are not of the type that the graph takes")
        if wanted is int and not -(2**63) <= min(listed) <= max(listed) < 2**63:
            raise ValueError("a group does not fit int64")
        name = str(stated["name"])
        if wanted is float:
            size = len(listed) + 1
            return cls(name, input_name, element_type, size, math.nan, _bands(listed, size))
        size, rows = len(listed), category_rows(listed, len(listed))
        other: Missing = Lookup(listed) if wanted is str else _unlisted(listed)
        return cls(name, input_name, element_type, size, other, rows)


class Groups:
    """The groups that a certificate lists, and the columns that they are declared to come from."""

    def __init__(self, stated: dict[str, Any], inputs: list[tuple[str, str]]) -> None:
        """``inputs`` are the names and element types of the graph's inputs for groups.

        Raises KeyError, TypeError or ValueError for what are no groups of such a graph.
        """
        self.columns = tuple(
            GroupColumn.of(column, *given)
            for column, given in zip(stated["columns"], inputs, strict=True)
        )
        own = len(stated["tables"]) - 1
        cells = math.prod(column.size for column in self.columns)
        tables = stated["table_of_cell"]
        if tables is None:
            tables = range(own)
        elif type(tables) is not list or set(map(type, tables)) != {int}:
            raise ValueError("the tables of the groups are no list of integers")
        if len(tables) != cells or not 0 <= min(tables) <= max(tables) <= own:
            raise ValueError("the tables of the groups are not one for each")
        self._tables = np.array([*tables, own], dtype=np.uint64)

    @property
    def names(self) -> list[str]:
        """The columns that the groups are declared to come from."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> list[str]:
        """The type of each column: int64, string, or float64 for bands."""
        return [column.element_type for column in self.columns]

    def read(self, labels: Sequence[Any], groups: Any, columns: Any, count: int) -> Feed:
        """What the graph takes; raises GroupError unless it is one value a label in each column.

        ``labels`` are the label columns, of which none may be a group's. ``groups`` is the only
        column of one, ``columns`` anything that gives columns by their names: a frame, a table, a
        mapping.
        """
        if (groups is None) == (columns is None):
            raise GroupError(
                f"this artifact has a table for each group: {self._how()}, one a label"
            )
        if groups is not None and (len(self.columns) > 1 or gives_columns(groups)):
            raise GroupError(f"the groups come from columns by their names: {self._how()}")
        feed: Feed = {}
        for column in self.columns:
            given = groups
            if columns is not None:
                given = column_named(columns, column.name, "groups", GroupError)
            for label in labels:
                refuse_misaligned(label, given, "groups", GroupError)
                if are_one_column(label, given):
                    raise GroupError(
                        f"the column of {column.name!r} is the label, which cannot be its own "
                        "group: groups are public"
                    )
            feed[column.input] = self._column(column, given, count)
        return feed

    def tables(self, feed: Feed) -> NDArray[np.uint64]:
        """[n] the index of each row's table, as the graph finds it."""
        cell: Any = 0
        beyond: Any = False
        for column in self.columns:
            place = column.places(feed[column.input])
            cell = cell * column.size + place
            beyond = beyond | (place == column.size)
        return self._tables[np.where(beyond, len(self._tables) - 1, cell)]

    def _column(self, column: GroupColumn, given: Any, count: int) -> NDArray[Any]:
        try:
            read = read_group_column(given, column.element_type, column.missing)
        except LabelError as error:
            reason = str(error).replace("labels", "groups")
            raise GroupError(f"the column {column.name!r}: {reason}") from None
        if len(read) != count:
            raise GroupError(f"expected one group a label, got {len(read)} for {count} labels")
        return read

    def _how(self) -> str:
        if len(self.columns) == 1:
            return f"give groups=, from the column {self.names[0]!r}"
        return f"give columns=, a frame or a mapping with the columns {self.names}"


def group_sources(
    names: list[str],
    given: Mapping[str, str] | None,
    columns: Collection[str],
    labels: Collection[str],
) -> dict[str, str]:
    """From each group column to the column of a frame that gives it: that of its name, unless
    ``given`` says another.

    ``columns`` are those of the frame, ``labels`` those of the labels, there and in the artifact.
    Raises GroupError.
    """
    given = {} if given is None else given
    for name in given:
        if name not in names:
            known = f"its groups come from {names}" if names else "it takes no groups"
            raise GroupError(f"the artifact has no group column {name!r}: {known}")
    sources = {name: given.get(name, name) for name in names}
    for name, source in sources.items():
        if source in labels:
            raise GroupError(f"{source!r} cannot be both the label and a group, which is public")
        if source not in columns:
            raise GroupError(
                f"there is no column {source!r} of groups; group_columns={{{name!r}: …}} says "
                "which other column it is"
            )
    return sources


def _bands(edges: list[float], other: int) -> Canonical:
    """The function from numbers [n] to their bands; NaN has the place ``other``."""
    if any(low >= high for low, high in pairwise(edges)):
        raise ValueError("the edges of bands do not increase")

    def places(numbers: NDArray[Any]) -> NDArray[np.uint64]:
        found = np.searchsorted(edges, numbers, side="right")
        return np.where(np.isnan(numbers), other, found).astype(np.uint64)

    return places


def _unlisted(values: list[int]) -> int:
    """What stands in for a null: an integer that is not listed."""
    listed = set(values)
    return next(-n for n in range(1, len(listed) + 2) if -n not in listed)
