"""The public map from a row's features to the table that randomizes its label.

Each column has listed values, or bands of a number. A row's *cell* is its combination of them,
numbered with the last column fastest; several cells may share a table. A row of which any column is
not listed (or no number, or missing) has the last table, that of all other groups.

Two texts are the same value if they are the same characters; nothing is normalized. A band holds
its lower edge and not its upper one; the first begins at −∞, the last ends at +∞, and only NaN is
in none. So every value has exactly one place.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from labeldp_verify.forms.domain import Category, strides_of

_NAMED = 3  # groups that share the table of all others, in messages
MAX_TABLES = 100_000
MAX_CELLS = 1_000_000
MAX_COLUMNS = 8
MAX_EDGES = 1_000

Value = Category | float


@dataclass(frozen=True)
class GroupColumn:
    """A public column: listed ``values``, all text or all int64, or else ``bands`` of numbers.

    ``bands`` are the finite edges, increasing. ``name`` is only declared: it decides nothing.
    """

    name: str
    values: tuple[Category, ...] | None = None
    bands: tuple[float, ...] | None = None

    @property
    def size(self) -> int:
        """The number of listed values, or of bands."""
        return len(self.values) if self.values is not None else len(self.edges) + 1

    @property
    def edges(self) -> tuple[float, ...]:
        """The edges of bands; none for listed values."""
        return self.bands or ()

    @property
    def is_text(self) -> bool:
        """Whether the column is of strings."""
        return self.values is not None and isinstance(self.values[0], str)

    @cached_property
    def _places(self) -> dict[Category, int]:
        return {value: i for i, value in enumerate(self.values or ())}

    def place(self, value: Any) -> int | None:
        """The number of a value or band; None if it is not listed."""
        if self.values is not None:
            return self._places.get(value)
        return None if math.isnan(value) else bisect_right(self.edges, value)

    def inside(self, place: int) -> list[Value]:
        """Some values of a place: the one that is listed, or those at both ends of a band."""
        if self.values is not None:
            return [self.values[place]]
        ends = (-math.inf, *self.edges, math.inf)
        low, high = ends[place : place + 2]
        last = high if place == len(self.edges) else math.nextafter(high, -math.inf)
        return [low, last, *([-0.0] if low == 0 else [])]

    def outside(self) -> list[Value]:
        """Some values of the column's type that are not listed; the first is used for nulls."""
        if self.values is None:
            return [math.nan]
        listed = set(self.values)
        found: list[Category]
        if self.is_text:
            found = ["", "\x7flabeldp: not a group", "other"]
            found.append("\x7f" * (1 + max(len(str(value)) for value in self.values)))
        else:
            found = [-(2**63), -1, 2**31, 2**32, 2**63 - 1, len(self.values)]
        free = [value for value in found if value not in listed]
        return list(free or [next(-n for n in range(1, len(listed) + 2) if -n not in listed)])

    def name_of(self, place: int) -> str:
        """How messages call a place."""
        if self.values is not None:
            return repr(self.values[place])
        low, high = place > 0, place < len(self.edges)
        if low and high:
            return f"{self.name} {self.edges[place - 1]:g} to {self.edges[place]:g}"
        if low:
            return f"{self.name} from {self.edges[place - 1]:g}"
        return f"{self.name} below {self.edges[0]:g}"

    def to_json(self) -> dict[str, Any]:
        """``{"bands": …, "values": …}``, one of them null; without the name."""
        return {
            "bands": None if self.bands is None else list(self.bands),
            "values": None if self.values is None else list(self.values),
        }


@dataclass(frozen=True)
class Groups:
    """Columns, and the table of each cell [C]; ``len(tables)`` is that of all other rows.

    Attributes:
        columns: in the order of the graph's inputs.
        table_of_cell: [C] numbers 0 … T; T, the last table, for cells without one of their own.
        own_tables: T.

    Without columns there is one cell, which has the last table like all rows.
    """

    columns: tuple[GroupColumn, ...] = ()
    table_of_cell: tuple[int, ...] = (0,)
    own_tables: int = 0

    @classmethod
    def each(cls, *columns: GroupColumn) -> Groups:
        """A table for each combination of the columns."""
        cells = math.prod(column.size for column in columns)
        return cls(columns, tuple(range(cells)), cells)

    @classmethod
    def of(cls, values: Sequence[Category], name: str = "group") -> Groups:
        """A table for each value of one column."""
        return cls.each(GroupColumn(name, tuple(values)))

    @property
    def tables(self) -> int:
        """T + 1: those of cells, and the last one for all other rows."""
        return self.own_tables + 1

    @property
    def cells(self) -> int:
        """C, the number of combinations."""
        return len(self.table_of_cell)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each cell has a table of its own, in their order."""
        return self.own_tables == self.cells and self.table_of_cell == tuple(range(self.cells))

    @property
    def strides(self) -> list[int]:
        """By how much the place of each column moves the number of a cell."""
        return strides_of([column.size for column in self.columns])

    def table(self, row: Sequence[Any]) -> int:
        """The table of one row: a value of each column."""
        cell = 0
        for column, stride, value in zip(self.columns, self.strides, row, strict=True):
            place = column.place(value)
            if place is None:
                return self.own_tables
            cell += stride * place
        return self.table_of_cell[cell]

    def places(self, cell: int) -> list[tuple[GroupColumn, int]]:
        """Each column, and its place in a cell."""
        columns = zip(self.columns, self.strides, strict=True)
        return [(column, cell // stride % column.size) for column, stride in columns]

    @cached_property
    def cells_of(self) -> list[list[int]]:
        """[T + 1] the cells of each table."""
        found: list[list[int]] = [[] for _ in range(self.tables)]
        for cell, table in enumerate(self.table_of_cell):
            found[table].append(cell)
        return found

    def name(self, table: int, *, counted: bool = True) -> str:
        """How messages call a table's group; listed groups may share the table of all others.

        ``counted`` says how many values it has.
        """
        if not self.columns:
            return "all rows"
        cells = self.cells_of[table]
        own = table < self.own_tables
        shown = 1 if own else _NAMED
        named, others = [self._cell_name(cell) for cell in cells[:shown]], len(cells) - shown
        if others > 0:
            named.append(f"{others:,} more" if counted else "more")
        if own:
            return " and ".join(named)
        return "other and " + "; ".join(named) if named else "other"

    def _cell_name(self, cell: int) -> str:
        return ", ".join(column.name_of(place) for column, place in self.places(cell))

    def rows(self, table: int) -> Iterator[tuple[Value, ...]]:
        """Rows of a table, its edges first; for the last one those that are not listed, too."""
        if table == self.own_tables:
            yield from self.unlisted()
        for cell in self.cells_of[table]:
            inside = [column.inside(place) for column, place in self.places(cell)]
            for turn in range(max(map(len, inside), default=1)):
                yield tuple(values[turn % len(values)] for values in inside)

    def unlisted(self) -> list[tuple[Value, ...]]:
        """Rows of which one column, or each, is not listed."""
        outside = [column.outside() for column in self.columns]
        listed = [column.inside(column.size - 1)[0] for column in self.columns]
        found = []
        for i, values in enumerate(outside):
            found += [(*listed[:i], value, *listed[i + 1 :]) for value in values]
        if len(self.columns) > 1:
            found.append(tuple(values[0] for values in outside))
        return found

    def to_json(self) -> dict[str, Any]:
        """The columns that decide a row's table."""
        return {
            "columns": [column.to_json() for column in self.columns],
            "own_tables": self.own_tables,
            "table_of_cell": None if self.is_plain else list(self.table_of_cell),
        }


def check_groups(groups: Groups) -> None:
    """Raise ValueError unless the map gives every row one table, and every table a cell."""
    if len(groups.columns) > MAX_COLUMNS:
        raise ValueError(f"groups come from one to {MAX_COLUMNS} columns")
    if len({column.name for column in groups.columns}) != len(groups.columns):
        raise ValueError("a column of the groups occurs twice")
    for column in groups.columns:
        _check_column(column)
    if groups.own_tables >= MAX_TABLES:
        raise ValueError(
            f"there are {groups.own_tables:,} groups; at most {MAX_TABLES - 1:,} are allowed"
        )
    cells = math.prod(column.size for column in groups.columns)
    if cells > MAX_CELLS:
        raise ValueError(
            f"the columns combine to {cells:,} groups; at most {MAX_CELLS:,} are allowed"
        )
    if len(groups.table_of_cell) != cells:
        raise ValueError("every group must have a table")
    following = 0  # the tables are numbered as they come, so that there is one way to write a map
    for table in groups.table_of_cell:
        if not 0 <= table <= groups.own_tables or following < table < groups.own_tables:
            raise ValueError("the tables of the groups must be numbered in their order")
        following += table == following < groups.own_tables
    if following != groups.own_tables:
        raise ValueError("every table must have a group")


def _check_column(column: GroupColumn) -> None:
    if (column.values is None) == (column.bands is None):
        raise ValueError("a column of groups has values or bands")
    if column.values is not None:
        _check_values(column.values)
        return
    edges = column.edges
    if not 1 <= len(edges) <= MAX_EDGES:
        raise ValueError(f"bands have 1 to {MAX_EDGES:,} edges")
    if not all(type(edge) is float and math.isfinite(edge) for edge in edges):
        raise ValueError("the edges of bands must be finite numbers")
    if any(edge == 0 and math.copysign(1, edge) < 0 for edge in edges):
        raise ValueError("an edge of bands is −0")
    if any(low >= high for low, high in pairwise(edges)):
        raise ValueError("the edges of bands must increase")


def _check_values(values: tuple[Any, ...]) -> None:
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        raise ValueError("the groups must be all text or all integers, at least one")
    if len(values) > MAX_CELLS:
        raise ValueError(f"there are {len(values):,} groups; at most {MAX_CELLS:,} are allowed")
    if len(set(values)) != len(values):
        raise ValueError("a group occurs twice")
    if kinds == {int} and not all(-(2**63) <= value < 2**63 for value in values):
        raise ValueError("a group does not fit int64")
    if kinds == {str} and any("\0" in value for value in values):
        raise ValueError("a group must not hold a NUL character")
