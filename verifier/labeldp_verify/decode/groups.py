"""Window randomizers by group in the constants of a graph.

The lookup is that of one long line, on which the tables lie one behind the other; where each lies
follows from the numbers that the graph adds to its words, and every one of them is demanded to be
what the others imply. So no table can reach into another.

Rows here are those of all tables: table · k + row.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.claims import Certificate
from labeldp_verify.decode.file import (
    MAX_PAIRS,
    Constants,
    DecodeError,
    FileForm,
    Rows,
    Words,
    check_outputs,
    demand,
)
from labeldp_verify.decode.window import boundary_pairs, read_boundaries, read_grid
from labeldp_verify.forms import (
    Domain,
    GroupColumn,
    GroupedWindows,
    Groups,
    WindowRandomizer,
)
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.forms.window import Segment
from labeldp_verify.graph import BucketGrid, write_model
from labeldp_verify.graph.messages import ModelProto
from labeldp_verify.graph.nodes import INT64, UINT64


def read_groups(certificate: Certificate) -> Groups:
    """The map from columns to tables that a certificate states; the rebuilt graph proves it."""
    stated = certificate.groups
    if stated is None:
        return Groups()
    columns = tuple(
        GroupColumn(
            column.name,
            None if column.values is None else tuple(column.values),
            None if column.bands is None else tuple(column.bands),
        )
        for column in stated.columns
    )
    demand(len(columns) > 0, "groups without a column")
    own = len(certificate.tables) - 1
    try:
        listed = stated.table_of_cell
        cells = range(own) if listed is None else listed
        demand(all(type(table) is int for table in cells), "the table of a group")
        groups = Groups(columns, tuple(cells), own)
        check_groups(groups)
    except ValueError as error:
        raise DecodeError(f"the groups: {error}") from None
    demand(listed is None or not groups.is_plain, "a map that says nothing")
    return groups


class GroupedFile(FileForm):
    """Window randomizers by group and the layout of their lookup grid."""

    randomizer: GroupedWindows

    def __init__(self, randomizer: GroupedWindows, grid: BucketGrid) -> None:
        """What ``read`` decoded."""
        self.randomizer = randomizer
        self.grid = grid

    @property
    def groups(self) -> Groups:
        """The map from columns to tables."""
        return self.randomizer.groups

    @classmethod
    def read(cls, model: ModelProto, domain: Domain, groups: Groups) -> GroupedFile:
        """Decode the constants of the graph."""
        return cls(*read_grouped(model, domain, groups))

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] on both sides of the boundaries of every table."""
        r, k = self.randomizer, self.randomizer.labels
        share = max(MAX_PAIRS // len(r.windows), 1)
        rows, words = [], []
        for table, window in enumerate(r.windows):
            at, u = boundary_pairs(window, share)
            low = np.uint64(64 - window.word_bits)
            full = u.astype(np.uint64) << low
            full[1::2] |= (np.uint64(1) << low) - np.uint64(1)  # bits below u must not matter
            rows.append(at + table * k)
            words.append(full)
        return np.concatenate(rows), np.concatenate(words)[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] of all tables and words [n, 1]."""
        r = self.randomizer
        tables = rows // r.labels
        shifts = np.array([64 - bits for bits in r.word_bits], dtype=np.uint64)
        totals = np.array([window.base_total for window in r.windows], dtype=np.int64)
        moves = np.array(r.moves(), dtype=np.int64).reshape(-1, 2)
        u = (words[:, 0] >> shifts[tables]).astype(np.int64)
        t = u + moves[rows, (u >= totals[tables]).astype(np.int64)]
        ends = np.array(r.lines.boundaries(), dtype=np.int64)
        kind = object if isinstance(r.segment_values[0], str) else None
        values = np.array(r.segment_values, dtype=kind)
        return values[np.searchsorted(ends, t, side="right") - 1]

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers and this grid define."""
        return write_model(domain, self.randomizer, certificate, self.grid)


def read_grouped(
    model: ModelProto, domain: Domain, groups: Groups
) -> tuple[GroupedWindows, BucketGrid]:
    """The tables that the graph's constants describe, and how their lookup grid is laid out."""
    constants = Constants(model)
    if constants.has("word_shifts"):
        shifts = constants.integers("word_shifts", UINT64, 1)
    else:
        shifts = constants.integers("word_shift", UINT64, 0) * groups.tables
    totals = constants.integers("base_totals", INT64, 1)
    moves = constants.integers("moves", INT64, 1)
    demand(all(2 <= shift <= 63 for shift in shifts), "the word size")
    demand(len(shifts) == groups.tables, "the number of word sizes")
    demand(len(totals) == groups.tables, "the number of tables")
    demand(len(moves) == 2 * domain.size * groups.tables, "the number of moves")
    sizes = list(zip(totals, [64 - shift for shift in shifts], strict=True))
    demand(all(1 <= T <= 2**bits for T, bits in sizes), "the base lines")

    places, end = _places(sizes, moves, domain.size)
    grid = read_grid(constants)
    entries = constants.vector("grid")
    boundaries = read_boundaries(entries, grid, sum(totals), end)
    values = constants.values("segment_values")
    demand(len(values) == len(boundaries) - 1, "the number of segments")

    def segments(start: int, stop: int) -> tuple[list[int], list[Any]]:
        """Lengths and values of the segments between two points, which must be boundaries."""
        i, j = bisect_left(boundaries, start), bisect_left(boundaries, stop)
        demand(boundaries[i] == start and boundaries[j] == stop, "where the tables begin")
        return [b - a for a, b in pairwise(boundaries[i : j + 1])], values[i:j]

    windows = []
    for place in places:
        lengths, outputs = segments(place.base, place.base + place.T)
        check_outputs(outputs, domain)
        extra_lengths, owners = segments(place.extra, place.end)
        index = {value: i for i, value in enumerate(outputs)}
        demand(all(v in index for v in owners), "the outputs of the extra line")
        extra = tuple(Segment(n, index[v]) for n, v in zip(extra_lengths, owners, strict=True))
        windows.append(
            WindowRandomizer(place.bits, tuple(lengths), extra, place.offsets, tuple(outputs))
        )
    return GroupedWindows(groups, tuple(windows)), grid


@dataclass(frozen=True)
class _Place:
    """Where the lines of a table lie: base, base + T; extra, end; and its offsets [k]."""

    bits: int
    T: int
    base: int
    extra: int
    end: int
    offsets: tuple[int, ...]


def _places(sizes: list[tuple[int, int]], moves: list[int], k: int) -> tuple[list[_Place], int]:
    """The places of tables of so many (T, bits), and where the last one ends."""
    base, extra = 0, sum(T for T, _ in sizes)
    places = []
    for table, (T, bits) in enumerate(sizes):
        own = moves[2 * k * table : 2 * k * (table + 1)]
        demand(all(move == base for move in own[::2]), "the moves along the base lines")
        offsets = tuple(move - (extra - T) for move in own[1::2])
        demand(min(offsets) >= 0, "the offsets")
        end = extra + 2**bits - T + max(offsets)
        demand(end < 2**63, "the length of the lines")
        places.append(_Place(bits, T, base, extra, end, offsets))
        base, extra = base + T, end
    return places, extra
