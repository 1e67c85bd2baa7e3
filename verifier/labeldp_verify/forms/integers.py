"""What a graph computes: for every group of rows a table, from labels to outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from labeldp_verify.forms.additive import AdditiveRandomizer
from labeldp_verify.forms.domain import Domain
from labeldp_verify.forms.grouped_windows import GroupedWindows
from labeldp_verify.forms.groups import Groups
from labeldp_verify.forms.table import TableRandomizer
from labeldp_verify.forms.window import WindowRandomizer

Randomizer = WindowRandomizer | AdditiveRandomizer | TableRandomizer


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
        """What the graph looks outputs up in: the only table, or all of them in one."""
        if not self.groups.columns:
            return self.tables[0]
        return GroupedWindows(self.groups, cast("tuple[WindowRandomizer, ...]", self.tables))
