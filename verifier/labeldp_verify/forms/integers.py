"""All integers of a graph: for every group of rows a table, from labels to outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, cast

from labeldp_verify.forms.domain import Domain
from labeldp_verify.forms.groups import Groups
from labeldp_verify.forms.randomizers import (
    Output,
    Randomizer,
    WindowRandomizer,
)

# ---- Window randomizers by public group: a table for each, and one for all other rows.
#
# A label's group is a public value that was fixed before any label was seen. So the table of that
# group decides what the label spends (privacy.md, Theorem 14). All tables are for the same labels.
# Word sizes may differ: a table whose segments are all wide needs fewer bits, and then fewer
# buckets.
#
# For the lookup, the base lines of all tables lie one after the other, followed by all extra lines.
# Row y of table g moves a word u, of B_g bits, to the point
#
#     t = u + base_start[g]                                     if u < T_g
#     t = u + extra_start[g] − T_g + offsets_g[y]               otherwise
#
# of this common line, on which each segment still belongs to one output of one table.


@dataclass(frozen=True)
class Lines:
    """The lengths [m] and [L] of all segments of the common line: base lines, then extra lines."""

    base: tuple[int, ...]
    extra: tuple[int, ...]

    @cached_property
    def base_total(self) -> int:
        """The length of all base lines."""
        return sum(self.base)

    @cached_property
    def extra_total(self) -> int:
        """The length of all extra lines."""
        return sum(self.extra)

    def boundaries(self) -> list[int]:
        """[m + L + 1] the ends of all segments, from 0."""
        return list(accumulate((*self.base, *self.extra), initial=0))


@dataclass(frozen=True)
class GroupedWindows:
    """A window randomizer for each group; pure data.

    Attributes:
        groups: the map from features to tables.
        windows: [T + 1] the tables, and the last one for all other rows.
    """

    groups: Groups
    windows: tuple[WindowRandomizer, ...]

    form = "grouped_window"
    words_per_label = 1

    @cached_property
    def word_bits(self) -> tuple[int, ...]:
        """[T + 1] B of each table, the number of random bits that a label consumes there."""
        return tuple(window.word_bits for window in self.windows)

    @property
    def labels(self) -> int:
        """k, the number of labels."""
        return len(self.windows[0].offsets)

    @cached_property
    def outputs(self) -> int:
        """Number of distinct outputs of all tables."""
        return len({value for window in self.windows for value in window.values})

    @cached_property
    def lines(self) -> Lines:
        """The common line."""
        base = tuple(length for window in self.windows for length in window.base)
        extra = tuple(segment.length for window in self.windows for segment in window.extra)
        return Lines(base, extra)

    @cached_property
    def segment_values(self) -> list[Output]:
        """The value of each segment of the common line."""
        values = [value for window in self.windows for value in window.values]
        values += (w.values[segment.output] for w in self.windows for segment in w.extra)
        return values

    def starts(self) -> Iterator[tuple[int, int]]:
        """(base_start, extra_start) of each table."""
        base, extra = 0, self.lines.base_total
        for window in self.windows:
            yield base, extra
            base, extra = base + window.base_total, extra + window.extra_total

    def moves(self) -> list[int]:
        """[(T + 1)·k·2] what is added to u: for each table and row, below T and from T on."""
        found: list[int] = []
        for window, (base, extra) in zip(self.windows, self.starts(), strict=True):
            behind = extra - window.base_total
            for offset in window.offsets:
                found += (base, behind + offset)
        return found

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "groups": self.groups.to_json(),
            "tables": [window.to_json() for window in self.windows],
        }


# ---- What a graph computes: for every group of rows a table, from labels to outputs.


@dataclass(frozen=True)
class Integers:
    """A label's domain, the map from public groups to tables, and the tables.

    Attributes:
        label: the domain, which has those of the columns where there are several.
        groups: without columns all rows have the only table.
        tables: [T + 1] a randomizer each, the last for all rows that no group lists.
    """

    label: Domain
    groups: Groups
    tables: tuple[Randomizer, ...]

    @classmethod
    def of(cls, label: Domain, lookup: Randomizer | GroupedWindows) -> Integers:
        """Those that one lookup holds."""
        if isinstance(lookup, GroupedWindows):
            return cls(label, lookup.groups, lookup.windows)
        return cls(label, Groups(), (lookup,))

    @cached_property
    def lookup(self) -> Randomizer | GroupedWindows:
        """The table in which the graph looks outputs up: the only one, or all of them in one."""
        if not self.groups.columns:
            return self.tables[0]
        return GroupedWindows(self.groups, cast("tuple[WindowRandomizer, ...]", self.tables))
