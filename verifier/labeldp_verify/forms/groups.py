"""Window randomizers by public group: a table for each listed group, and one for all others.

A label's group is a public value that was fixed before any label was seen, so that its own table
decides what it pays (privacy.md, Theorem 14). All tables speak of the same labels. Each may have a
word size of its own: one whose segments are all wide needs fewer bits, and fewer buckets then.

For the lookup, the base lines of all tables lie one behind the other, and behind them all extra
lines. Row y of table g moves a word u, of B_g bits, to the point

    t = u + base_start[g]                                     if u < T_g
    t = u + extra_start[g] − T_g + offsets_g[y]               otherwise

of this common line, on which each segment still belongs to one output of one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from labeldp_verify.forms.domain import Category
from labeldp_verify.forms.window import Output, WindowRandomizer, check_form

MAX_TABLES = 100_000


@dataclass(frozen=True)
class Groups:
    """The listed groups: all text, or all integers of 64 bits; every other value has one table.

    Two texts are the same group if they are the same characters; nothing is normalised.
    """

    values: tuple[Category, ...]

    @property
    def is_text(self) -> bool:
        """True if the groups are strings, false if they are integers."""
        return isinstance(self.values[0], str)

    @property
    def tables(self) -> int:
        """G + 1: one for each listed group, and the last one for all other values."""
        return len(self.values) + 1

    @property
    def are_numbered(self) -> bool:
        """Whether the groups are just 0 … G − 1, which needs no map."""
        return self.values == tuple(range(len(self.values)))

    def unlisted(self) -> list[Category]:
        """Some values of the groups' type that are not listed: the first stands in for nulls."""
        found: list[Category]
        if self.is_text:
            found = ["", "\x7flabeldp: not a group", "other"]
            found.append("\x7f" * (1 + max(len(str(value)) for value in self.values)))
        else:
            edges = (-(2**63), -1, 2**31, 2**32, 2**63 - 1, len(self.values))
            found = list(edges)
        listed = set(self.values)
        return [value for value in found if value not in listed] or [self._free(listed)]

    def _free(self, listed: set[Category]) -> Category:
        """An integer that is not listed."""
        return next(-n for n in range(1, len(listed) + 2) if -n not in listed)

    def name(self, table: int) -> str:
        """How messages call a table's group."""
        return "other" if table == len(self.values) else repr(self.values[table])

    def to_json(self) -> list[Category]:
        """The listed values."""
        return list(self.values)


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
    """A window randomizer for each group; pure data, checked by ``check_groups``.

    Attributes:
        groups: the listed values.
        windows: [G + 1] their tables in the same order, and the last one for all other values.
    """

    groups: Groups
    windows: tuple[WindowRandomizer, ...]

    form = "grouped_window"
    words_per_label = 1

    @cached_property
    def word_bits(self) -> tuple[int, ...]:
        """[G + 1] B of each table, the number of random bits that a label consumes there."""
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
        """[(G + 1)·k·2] what is added to u: for each table and row, below T and from T on."""
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


def check_values(values: tuple[Any, ...]) -> None:
    """Raise ValueError unless these are the values of ``Groups``."""
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        raise ValueError("the groups must be all text or all integers, at least one")
    if len(values) >= MAX_TABLES:
        raise ValueError(f"there are {len(values):,} groups; at most {MAX_TABLES - 1:,} fit")
    if len(set(values)) != len(values):
        raise ValueError("a group stands there twice")
    if kinds == {int} and not all(-(2**63) <= value < 2**63 for value in values):
        raise ValueError("a group does not fit int64")
    if kinds == {str} and any("\0" in value for value in values):
        raise ValueError("a group must not hold a NUL character")


def check_groups(randomizer: GroupedWindows) -> None:
    """Raise ValueError unless the integers form a randomizer by group."""
    r = randomizer
    check_values(r.groups.values)
    if len(r.windows) != r.groups.tables:
        raise ValueError("every group must have a table, and the others one")
    for window in r.windows:
        check_form(window)
    if len({len(window.offsets) for window in r.windows}) != 1:
        raise ValueError("all tables must have the same labels")
    if r.lines.base_total + r.lines.extra_total >= 1 << 63:
        raise ValueError("the lines of all tables together must stay below 2^63: use fewer bits")
